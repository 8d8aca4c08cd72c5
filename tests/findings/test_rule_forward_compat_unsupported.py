import re

import pytest
from msgspec.structs import replace
from rule_facts import (
    CUDA_TORCH,
    HOST,
    LINUX,
    commands,
    cuda_fails,
    cuda_sees,
    hit,
    libcuda,
    loaded,
    nvml,
    on_bus,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.driver import CudaDriver, Driver
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Judgement

COMPAT = "/usr/local/cuda-13.0/compat"
GEFORCE = ("2684", "8.9")
TORCH_FOR_13 = replace(CUDA_TORCH, version="2.9.1+cu130", cuda="13.0")
REFUSED = CudaDriver(library=f"{COMPAT}/libcuda.so.580.95.05", init_code=804, cuda="13.0")


def judge(*sections: Section) -> Judgement:
    return ask("forward-compat-unsupported", on_bus(GEFORCE), LINUX, HOST, *sections)


def test_the_folder_is_taken_off_the_path() -> None:
    path = Environment(variables={"LD_LIBRARY_PATH": f"{COMPAT}:/opt/lib"})
    found = hit(judge(REFUSED, path))
    assert "804" in found.headline
    assert found.evidence == ("cuda_driver.init_code", "cuda_driver.library")
    assert "export LD_LIBRARY_PATH=/opt/lib" in commands(found)
    assert "pip" not in commands(found)
    assert found.confidence is Confidence.CERTAIN


def test_the_folder_is_taken_off_the_path_although_the_loader_names_where_its_link_leads() -> None:
    path = Environment(variables={"LD_LIBRARY_PATH": "/usr/local/cuda/compat:/opt/lib"})
    link = replace(
        libcuda(kind="compat", path="/usr/local/cuda/compat/libcuda.so.1"),
        found_via="LD_LIBRARY_PATH",
    )
    found = hit(judge(REFUSED, path, Driver(libcuda=[link, libcuda()])))
    assert found.fixes[0].commands == ("export LD_LIBRARY_PATH=/opt/lib",)


def test_the_loader_s_first_library_is_named_where_the_loaded_one_is_unknown() -> None:
    first = Driver(libcuda=[libcuda(kind="compat", path=f"{COMPAT}/libcuda.so.1"), libcuda()])
    found = hit(judge(cuda_fails(804), first))
    assert f"{COMPAT}/libcuda.so.1" in found.headline
    assert "sudo ldconfig" in commands(found)


def test_the_driver_is_named_only_where_it_is_too_old_by_itself() -> None:
    too_old = hit(judge(REFUSED, loaded("535.183.01"), TORCH_FOR_13))
    (both,) = too_old.fixes
    assert "NVIDIA driver branch 580" in both.text
    assert both.commands[1].startswith("sudo sed")
    assert both.commands[-1] == "sudo reboot"
    enough = hit(judge(REFUSED, loaded("580.95.05"), TORCH_FOR_13))
    assert len(enough.fixes) == 1
    unseen = hit(judge(cuda_fails(804), loaded("580.95.05"), TORCH_FOR_13))
    assert unseen.fixes[1].text.startswith("Or compare the release")
    unknown = hit(judge(REFUSED, TORCH_FOR_13))
    assert unknown.fixes[1].text.startswith("Or ")


def test_only_lines_of_cuda_compat_become_comments() -> None:
    found = hit(judge(cuda_fails(804), Driver(libcuda=[libcuda(kind="compat")])))
    (script,) = (command for command in found.fixes[0].commands if " sed " in command)
    (pattern,) = re.findall(r"'s,(.*),#&,'", script)
    assert re.fullmatch(pattern, "/usr/local/cuda-13.0/compat")
    assert not re.fullmatch(pattern, "# /usr/local/cuda-13.0/compat")
    assert not re.fullmatch(pattern, "/usr/lib/libc6-compat")
    assert not re.fullmatch(pattern, "/opt/cuda-compat-lib")  # the first command does not show it
    assert " -i.bak " in script


def test_without_a_compat_library_it_is_only_likely() -> None:
    found = hit(judge(cuda_fails(804), Driver(libcuda=[libcuda()])))
    assert found.confidence is Confidence.LIKELY


def test_other_answers_are_fine_and_no_answer_is_unknown() -> None:
    quiet(judge(cuda_fails(803)))
    quiet(judge(cuda_sees(GEFORCE)))
    with pytest.raises(UnknownFactError, match=r"cuda_driver\.init_code"):
        judge()


def test_a_data_centre_gpu_is_not_said_to_be_unable() -> None:
    a100 = nvml(("NVIDIA A100-SXM4-80GB", "8.0"))
    found = hit(ask("forward-compat-unsupported", LINUX, HOST, a100, cuda_fails(804)))
    assert "although GPU 0 (NVIDIA A100-SXM4-80GB) supports cuda-compat" in found.headline
    assert "does not support" not in found.headline
    assert "cat /proc/driver/nvidia/version" in commands(found)
    assert found.confidence is Confidence.LIKELY
    mixed = nvml(("NVIDIA A100-SXM4-80GB", "8.0"), ("NVIDIA GeForce RTX 4090", "8.9"))
    found = hit(ask("forward-compat-unsupported", LINUX, HOST, mixed, cuda_fails(804)))
    assert "does not support" in found.headline
