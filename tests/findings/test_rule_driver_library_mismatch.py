from each import each
from rule_facts import (
    A100,
    DOCKER,
    HOST,
    LINUX,
    WSL2,
    commands,
    cuda_fails,
    cuda_sees,
    hit,
    libcuda,
    loaded,
    nvml,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section
from gpucheck.facts.claims import Confidence
from gpucheck.facts.driver import Driver, NvidiaSmi, Nvml
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Judgement

UPDATED = loaded("535.161.07", library="535.183.01")


def judge(*sections: Section) -> Judgement:
    return ask("driver-library-mismatch", *sections)


def test_an_update_without_restart() -> None:
    found = hit(judge(LINUX, HOST, UPDATED, Nvml(library_found=True, init_code=18)))
    assert "535.161.07" in found.headline
    assert "535.183.01" in found.headline
    assert {"nvml.init_code", "driver.module_release"} <= set(found.evidence)
    assert found.confidence is Confidence.CERTAIN
    assert "sudo reboot" in commands(found)
    assert "sudo rmmod nvidia_uvm nvidia\n" in commands(found)
    assert "install" not in commands(found)


@each(
    "section",
    [
        Nvml(init_code=18),
        NvidiaSmi(
            found=True,
            message="Failed to initialize NVML: Driver/library version mismatch\n"
            "NVML library version: 535.183",
        ),
        cuda_fails(803),
    ],
)
def test_one_word_of_the_driver_is_enough(section: Section) -> None:
    assert hit(judge(section)).confidence is Confidence.CERTAIN


def test_files_alone_where_nobody_could_ask() -> None:
    assert hit(judge(LINUX, HOST, UPDATED)).confidence is Confidence.LIKELY


def test_an_answer_is_worth_more_than_file_names() -> None:
    quiet(judge(LINUX, HOST, UPDATED, nvml(A100)))
    quiet(judge(LINUX, HOST, UPDATED, cuda_sees(A100)))


def test_804_only_with_differing_releases() -> None:
    quiet(judge(LINUX, HOST, loaded(), nvml(A100), cuda_fails(804)))
    found = hit(judge(LINUX, HOST, UPDATED, nvml(A100), cuda_fails(804)))
    assert "cuda_driver.init_code" in found.evidence


def test_a_newer_compat_library_is_meant_to_differ() -> None:
    driver = Driver(
        module_loaded=True,
        module_release="535.183.01",
        libcuda=[libcuda("550.54.14", "compat"), libcuda("535.183.01")],
    )
    quiet(judge(LINUX, HOST, driver))


def test_an_older_compat_library_is_taken_out_of_the_path() -> None:
    folder = "/usr/local/cuda-12.0/compat"
    compat = libcuda(
        "525.60.13",
        "compat",
        path=f"{folder}/libcuda.so.525.60.13",
        found_via="LD_LIBRARY_PATH",
    )
    driver = Driver(module_loaded=True, module_release="535.183.01", libcuda=[compat, libcuda()])
    path = Environment(variables={"LD_LIBRARY_PATH": f"{folder}:/opt/lib"})
    found = hit(judge(LINUX, DOCKER, driver, path, cuda_fails(803)))
    assert commands(found) == "export LD_LIBRARY_PATH=/opt/lib"


def test_a_library_left_by_another_driver() -> None:
    left = libcuda("470.82.01", path="/usr/lib64/libcuda.so.470.82.01")
    driver = Driver(module_loaded=True, module_release="535.183.01", libcuda=[left, libcuda()])
    found = hit(judge(LINUX, HOST, driver, Nvml(init_code=18)))
    assert "reboot" not in commands(found)
    assert "/usr/lib64/libcuda.so.470.82.01" in found.fixes[0].text


def test_a_container_is_restarted() -> None:
    found = hit(judge(LINUX, DOCKER, UPDATED, Nvml(init_code=18)))
    assert "Restart this container" in found.fixes[0].text


def test_wsl_takes_both_from_windows() -> None:
    quiet(judge(WSL2, HOST, Nvml(init_code=18)))


def test_releases_that_fit() -> None:
    quiet(judge(LINUX, HOST, loaded()))
    quiet(judge(LINUX, HOST, Driver(module_loaded=False, module_release="", libcuda=[libcuda()])))


def test_a_library_without_a_release_in_its_name() -> None:
    driver = Driver(module_loaded=True, module_release="535.183.01", libcuda=[libcuda(kind="stub")])
    quiet(judge(LINUX, HOST, driver))
