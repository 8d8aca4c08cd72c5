import json
import re
from typing import Any

import machine_files
import msgspec
import pytest
from each import each
from rules_support import TABLES, snapshot
from test_machines import judged, reported

from gpucheck.derived.gpus import read_mask
from gpucheck.engine import diagnose
from gpucheck.facts import Section
from gpucheck.facts.driver import (
    CudaDevice,
    CudaDriver,
    KernelLog,
    MigDevice,
    NvidiaSmi,
    Nvml,
    NvmlGpu,
    XidEvent,
)
from gpucheck.facts.libraries import CudaLibraries, CudaLibrary, Extension, Extensions
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns, Snapshot, decode
from gpucheck.facts.system import Container, Environment, System
from gpucheck.facts.torch import Distribution, Interpreter, Packages, PackageSources, TorchBuild
from gpucheck.language import plain, say
from gpucheck.output.redact import redact, redact_text, redaction
from gpucheck.output.redact.public_names import ORDINARY

UUIDS = [
    "GPU-8f2c1c55-0b8d-4c39-9d2b-7f3f4c1e5a90",
    "GPU-8f2d7a02-77aa-4e11-b0c4-2f6b8a9d3c55",
    "GPU-11e4aa00-0a1b-4c2d-8e3f-4a5b6c7d8e9f",
]
ALICE = System(os="linux", user="alice", home="/home/alice", hostname="gpu-box-7")


def redacted(*sections: Section, runs: ProbeRuns | None = None) -> Snapshot:
    return redact(snapshot(*sections, runs=runs))


def variables(values: dict[str, str], *sections: Section) -> dict[str, str]:
    found = redacted(Environment(variables=values), *sections).get(Environment).variables
    assert found is not None
    return found


def path(value: str, system: System = ALICE) -> str:
    found = redacted(system, Interpreter(executable=value)).get(Interpreter).executable
    assert found is not None
    return found


SITE = "/home/alice/venv/lib/python3.11/site-packages"
OWN = Extension(
    package="acme-ops", version="1.2", file="acme_ops/libacme_ops.so", needs_torch=True,
    path=f"{SITE}/acme_ops/libacme_ops.so", variant_of="acme_ops/libacme_ops.so", python="",
    cuda="12", missing_libraries=["libcudart.so.12"], missing_symbols=[], missing_symbol_count=0,
    codes=["sm_80"], sources={"*": f"{SITE}/acme_ops/libacme_ops.so"},
)  # fmt: skip
PUBLIC = Extension(
    package="spconv-cu120", version="2.3", file="spconv/_C.cpython-311-x86_64-linux-gnu.so",
    path=f"{SITE}/spconv/_C.cpython-311-x86_64-linux-gnu.so", python="311", needs_torch=True,
    cuda="", missing_libraries=[], missing_symbols=[], missing_symbol_count=0, codes=[],
)  # fmt: skip


def test_an_extension_of_ones_own_keeps_its_name_to_itself() -> None:
    own, public = (
        redacted(ALICE, Extensions(extensions=[OWN, PUBLIC])).get(Extensions).extensions or []
    )
    assert (own.package, own.version, own.cuda, own.codes) == ("package1", "1.2", "12", ["sm_80"])
    assert "acme" not in repr(own)
    assert own.variant_of == own.file
    assert own.path == f"/home/user1/venv/lib/python3.11/site-packages/{own.file}"
    assert (public.package, public.file) == (PUBLIC.package, PUBLIC.file)


@each(
    ("before", "after"),
    [
        ("https://download.pytorch.org/whl/cu128", "https://download.pytorch.org/whl/cu128"),
        ("https://mirrors.example.cn/pypi/simple", "https://address1/pypi/simple"),
        ("https://index.acme.example:8443/team/simple", "https://address1/dir1/simple"),
        ("https://10.1.2.3/pypi/simple", "https://address1/pypi/simple"),
    ],
)
def test_the_address_of_an_index(before: str, after: str) -> None:
    section = PackageSources(pip_index=before, pip_extra_indexes=[before])
    found = redacted(ALICE, section).get(PackageSources)
    assert (found.pip_index, found.pip_extra_indexes) == (after, [after])
    command = "pip install torch --index-url {}/cu128"
    assert redact_text(command.format(before), snapshot(ALICE, section)) == command.format(after)


def test_channels_of_conda() -> None:
    channels = ["conda-forge", "acme", "https://conda.acme.corp/main", "acme/label/own"]
    found = redacted(PackageSources(conda_channels=channels)).get(PackageSources).conda_channels
    assert found == ["conda-forge", "channel1", "https://address1/main", "channel1/label/dir1"]


@each(
    "name", ["flash-attn", "flash_attn", "xformers", "cupy-cuda12x", "the extension", "torchvision"]
)
def test_what_everybody_can_download_keeps_its_name(name: str) -> None:
    section = Extensions(extensions=[Extension(package=name)])
    assert [
        extension.package for extension in redacted(section).get(Extensions).extensions or ()
    ] == [name]


def test_the_same_is_found_in_a_snapshot_without_names_of_packages() -> None:
    torch = TorchBuild(installed=True, version="2.9.1+cu130", built_for="cuda", cuda="13.0")
    python = Interpreter(status="ok", version="3.11.9", free_threaded=False)
    before = snapshot(ALICE, torch, python, Extensions(extensions=[OWN, PUBLIC]))
    found = {finding.slug: finding for finding in diagnose(before, TABLES).findings}
    again = {finding.slug: finding for finding in diagnose(redact(before), TABLES).findings}
    assert "extension-abi-mismatch" in found
    assert found.keys() == again.keys()
    headline = found["extension-abi-mismatch"].headline
    assert headline.startswith("acme-ops 1.2 was compiled for CUDA 12")
    assert again["extension-abi-mismatch"].headline == redact_text(headline, before)
    assert redact_text(headline, before).startswith("package1 1.2 was compiled for CUDA 12")


@each(
    ("before", "after"),
    [
        ("/home/alice/proj/.venv/bin/python3.11", "/home/user1/dir1/.venv/bin/python3.11"),
        (
            "/home/bob/miniconda3/envs/torch/bin/python",
            "/home/user2/miniconda3/envs/torch/bin/python",
        ),
        ("/data/acme/miniforge3/envs/llm/bin/python", "/data/dir1/miniforge3/envs/dir2/bin/python"),
        ("/mnt/c/Users/alice/x.py", "/mnt/c/Users/user1/file1.py"),
        ("/usr/bin/python3.10", "/usr/bin/python3.10"),
        ("/usr/local/cuda-12.4/bin/nvcc", "/usr/local/cuda-12.4/bin/nvcc"),
        ("/usr/local/acme/bin/python3", "/usr/local/dir1/bin/python3"),
        ("/opt/conda/envs/py311/bin/python", "/opt/conda/envs/py311/bin/python"),
        ("/opt/acme/lib/libcudart.so.12", "/opt/dir1/lib/libcudart.so.12"),
        ("/root/work/.venv/bin/python", "/root/work/.venv/bin/python"),
        ("/run/media/alice/disk/python", "/run/media/user1/disk/python"),
        ("/usr/lib/../../home/alice/python", "/usr/lib/../../home/user1/python"),
        ("/scratch/alice", "/scratch/user1"),
        ("/", "/"),
        ("", ""),
        ("torch.py", "torch.py"),
        ("C:\\Users\\alice\\Acme\\python.exe", "C:\\Users\\user1\\dir1\\python.exe"),
        (
            "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4",
            "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4",
        ),
        (
            "/home/alice/.local/share/uv/python/cpython-3.12.3-linux-x86_64-gnu/bin/python3",
            "/home/user1/.local/share/uv/python/cpython-3.12.3-linux-x86_64-gnu/bin/python3",
        ),
    ],
)
def test_only_private_names_in_a_path_change(before: str, after: str) -> None:
    assert path(before) == after


def test_windows_does_not_tell_capitals_apart() -> None:
    both = redacted(
        System(os="windows", user="Alice", home="C:\\Users\\Alice"),
        Interpreter(executable="c:\\users\\ALICE\\job\\python.exe", prefix="C:\\Users\\Alice\\Job"),
    ).get(Interpreter)
    assert both.executable == "c:\\users\\user1\\dir1\\python.exe"
    assert both.prefix == "C:\\Users\\user1\\dir1"


def test_a_user_called_nvidia_leaves_the_driver_alone() -> None:
    system = System(
        os="linux",
        user="nvidia",
        home="/home/nvidia",
        hostname="gpu",
        sources={"kernel": "/proc/driver/nvidia/version"},
    )
    found = redacted(
        system,
        Interpreter(executable="/home/nvidia/venv/bin/python"),
        NvidiaSmi(message="NVIDIA-SMI has failed: no nvidia driver on gpu"),
        Nvml(problems={"*": "libnvidia-ml.so.1: not there; see nvidia-smi"}),
    )
    assert found.get(System).user == "user1"
    assert found.get(System).home == "/home/user1"
    assert found.get(System).hostname == "host1"
    assert found.get(System).sources == {"kernel": "/proc/driver/nvidia/version"}
    assert found.get(Interpreter).executable == "/home/user1/venv/bin/python"
    assert found.get(NvidiaSmi).message == "NVIDIA-SMI has failed: no nvidia driver on gpu"
    assert found.get(Nvml).problems == {"*": "libnvidia-ml.so.1: not there; see nvidia-smi"}


def test_what_one_field_keeps_is_found_by_what_another_told() -> None:
    """A folder of the system is public, unless it is called like the user or the machine."""
    paths = ["/usr/share/alice/x", "/opt/conda/envs/gpu-box-7", "/usr/share/cuda/x"]
    section = Interpreter(executable=paths[0], sys_path=paths)
    found = redacted(ALICE, section, NvidiaSmi(message="alice")).get(Interpreter)
    assert found.executable == "/usr/share/user1/x"
    assert found.sys_path == ["/usr/share/user1/x", "/opt/conda/envs/host1", "/usr/share/cuda/x"]


def test_a_private_channel_is_replaced_and_its_package_stays() -> None:
    sources = PackageSources(conda_channels=["https://conda.acme.corp/acme-ml", "acme-ml"])
    packages = Packages(conda_packages=["pytorch 2.8.0 cpu_0 acme-ml", "numpy 2.1 0 conda-forge"])
    found = redacted(sources, packages, NvidiaSmi(message="no channel acme-ml here"))
    assert found.get(Packages).conda_packages == [
        "pytorch 2.8.0 cpu_0 channel1", "numpy 2.1 0 conda-forge",
    ]  # fmt: skip
    channels = ["https://address1/channel1", "channel1"]
    assert found.get(PackageSources).conda_channels == channels
    assert found.get(NvidiaSmi).message == "no channel channel1 here"
    command = "conda install -c acme-ml pytorch"
    shown = redaction(snapshot(sources, packages)).command(command)
    assert shown == "conda install -c channel1 pytorch"


def test_files_of_a_public_package_keep_their_names() -> None:
    site = "/home/alice/v/lib/python3.11/site-packages"
    kept = "/home/user1/v/lib/python3.11/site-packages/torch/_dynamo/x.py"
    assert path(f"{site}/torch/_dynamo/x.py") == kept
    assert "acme" not in path(f"{site}/acme_nets/own/x.py")


def test_root_is_nobody_in_particular() -> None:
    found = redacted(System(os="linux", user="root", home="/root", hostname="localhost"))
    assert found.get(System).user == "root"
    assert found.get(System).home == "/root"
    assert found.get(System).hostname == "localhost"


def test_words_with_a_fixed_meaning_stay_when_a_user_has_the_name() -> None:
    system = System(os="linux", user="ubuntu", distribution="ubuntu", pretty_name="ubuntu 22.04")
    found = redacted(system, Container(runtime="docker")).get(System)
    assert found.distribution == "ubuntu"
    assert found.pretty_name == "ubuntu 22.04"
    assert redacted(System(user="docker"), Container(runtime="docker")).get(Container).runtime == (
        "docker"
    )


def test_names_are_found_in_sentences() -> None:
    found = redacted(
        ALICE,
        TorchBuild(problems={"*": "worker on gpu-box-7: alice may not read it"}),
        runs=ProbeRuns(
            (
                ProbeRun(
                    name="torch", status="crashed", problem="/home/alice/job/y.py: alice's file"
                ),
            )
        ),
    )
    assert found.get(TorchBuild).problems == {"*": "worker on host1: user1 may not read it"}
    assert found.runs.runs[0].problem == "/home/user1/dir1/file2.py: user1's file"


def test_the_same_value_has_the_same_standin_everywhere() -> None:
    folder = "/data/acme/lib/secret-sdk"
    found = redacted(
        Environment(variables={"LD_LIBRARY_PATH": f"/usr/lib:{folder}:"}),
        CudaLibraries(libraries=[CudaLibrary(path=f"{folder}/libcudnn.so.9", found_via="system")]),
        Container(injected=[folder]),
    )
    values = found.get(Environment).variables
    libraries = found.get(CudaLibraries).libraries
    assert values is not None
    assert libraries is not None
    _, same, empty = values["LD_LIBRARY_PATH"].split(":")
    assert libraries[0].path == f"{same}/libcudnn.so.9"
    assert found.get(Container).injected == [same]
    assert "secret" not in same
    assert empty == ""


def test_variables_by_what_they_hold() -> None:
    found = variables(
        {
            "PYTHONPATH": "/home/alice/src:/home/alice/other",
            "LD_PRELOAD": "/home/alice/libhook.so libjemalloc.so.2",
            "CONDA_DEFAULT_ENV": "acme-llm",
            "CONDA_PREFIX": "/home/alice/miniconda3/envs/acme-llm",
            "MASTER_ADDR": "10.1.2.3",
            "NCCL_SOCKET_IFNAME": "eth0,ib0",
            "NVIDIA_REQUIRE_CUDA": "cuda>=12.4 brand=tesla,driver>=470",
            "TORCH_CUDA_ARCH_LIST": "8.0;9.0+PTX",
            "CUDA_HOME": "(hidden)",
        },
        ALICE,
    )
    assert found == {
        "PYTHONPATH": "/home/user1/src:/home/user1/dir1",
        "LD_PRELOAD": "/home/user1/libhook.so libjemalloc.so.2",
        "CONDA_DEFAULT_ENV": "dir2",
        "CONDA_PREFIX": "/home/user1/miniconda3/envs/dir2",
        "MASTER_ADDR": "address1",
        "NCCL_SOCKET_IFNAME": "eth0,ib0",
        "NVIDIA_REQUIRE_CUDA": "cuda>=12.4 brand=tesla,driver>=470",
        "TORCH_CUDA_ARCH_LIST": "8.0;9.0+PTX",
        "CUDA_HOME": "(hidden)",
    }


@each(
    ("name", "value"),
    [
        # as an image for CUDA 13.0 has it, which is 2,165 characters long
        ("NVIDIA_REQUIRE_CUDA", "cuda>=13.0 " + 48 * "brand=quadrortx,driver>=535,driver<536 "),
        ("TORCH_CUDA_ARCH_LIST", "9.0a;10.0f+PTX"),
    ],
)
def test_settings_of_images_stay(name: str, value: str) -> None:
    assert variables({name: value}, ALICE) == {name: value}


@each(
    ("value", "after"),
    [
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("gpu-box-7", "host1"),
        ("node1.acme.internal", "address1"),
    ],
)
def test_the_address_of_the_master(value: str, after: str) -> None:
    assert variables({"MASTER_ADDR": value}, ALICE)["MASTER_ADDR"] == after


def test_versions_are_no_addresses() -> None:
    pins = {"nvidia-cudnn-cu12": "==9.1.0.70"}
    found = redacted(
        Environment(variables={"MASTER_ADDR": "10.1.2.3"}), TorchBuild(pins=pins, version="2.6.0")
    )
    assert found.get(TorchBuild).pins == pins


def masked(value: str) -> tuple[str, Any, Any]:
    """Return the redacted value, and what it lets through before and after."""
    gpus = Nvml(gpus=[NvmlGpu(uuid=uuid) for uuid in UUIDS])
    after = redacted(gpus, Environment(variables={"CUDA_VISIBLE_DEVICES": value}))
    new = (after.get(Environment).variables or {})["CUDA_VISIBLE_DEVICES"]
    uuids = [gpu.uuid for gpu in after.get(Nvml).gpus or []]
    assert len(set(uuids)) == len(UUIDS)
    return new, read_mask(value, 3, UUIDS), read_mask(new, 3, uuids)


@each(
    "value",
    [
        "",
        "-1",
        "0,2",
        "1gpu",
        "all",
        "GPU-8f2c",
        "GPU-8f2",
        "GPU-1",
        "GPU-",
        "GPU-8f2c1c55-0b8d",
        UUIDS[2],
        f"{UUIDS[0]},{UUIDS[2]}",
        f" {UUIDS[1]} , GPU-8f2c",
        "GPU-deadbeef",
        "GPU-deadbeef-0000-0000-0000-000000000000",
        f"{UUIDS[0]},GPU-deadbeef,{UUIDS[1]}",
        "GPU-8f2c,GPU-8f2c",
        UUIDS[0].upper(),
        UUIDS[0].lower(),
    ],
)
def test_a_mask_lets_the_same_gpus_through(value: str) -> None:
    new, before, after = masked(value)
    assert (after.kind, after.chosen, bool(after.bad)) == (
        before.kind,
        before.chosen,
        bool(before.bad),
    )
    assert not re.search("8f2[cd]|11e4|deadbeef", new)


def test_uuids_keep_prefix_and_equality() -> None:
    mig = "MIG-4a5b6c7d-1111-2222-3333-444455556666"
    found = redacted(
        Nvml(gpus=[NvmlGpu(uuid=UUIDS[0], mig_devices=[MigDevice(uuid=mig)])]),
        CudaDriver(devices=[CudaDevice(uuid=UUIDS[0])]),
        Environment(variables={"CUDA_VISIBLE_DEVICES": f"MIG-{UUIDS[0]}/1/0"}),
        NvidiaSmi(message=f"Unable to determine the device handle for {UUIDS[0]}: Unknown Error"),
    )
    gpus, devices = found.get(Nvml).gpus, found.get(CudaDriver).devices
    assert gpus is not None
    assert devices is not None
    pseudonym = gpus[0].uuid
    assert pseudonym is not None
    assert re.fullmatch("GPU-0000000[0-9]-0000-0000-0000-000000000000", pseudonym)
    assert devices[0].uuid == pseudonym
    assert (gpus[0].mig_devices or [])[0].uuid != pseudonym
    values = found.get(Environment).variables or {}
    assert values["CUDA_VISIBLE_DEVICES"] == f"MIG-{pseudonym}/1/0"
    assert found.get(NvidiaSmi).message == (
        f"Unable to determine the device handle for {pseudonym}: Unknown Error"
    )


def test_a_list_of_devices_is_known_by_its_looks() -> None:
    found = redacted(
        Nvml(gpus=[NvmlGpu(uuid=UUIDS[0])]),
        Container(visible_devices="GPU-8f2c", requirements="cuda>=12.4"),
    )
    assert found.get(Container).visible_devices == "GPU-00000001"
    assert found.get(Container).requirements == "cuda>=12.4"


def test_paths_are_found_in_texts() -> None:
    text = (
        "ImportError: /home/alice/proj/lib/libtorch_cuda.so: undefined symbol, see "
        "https://example.com/home/alice and file=/data/acme/x.log. (in '/home/alice/My Files/a b')"
    )
    taken = snapshot(ALICE, Interpreter(prefix="/home/alice/My Files/a b"))
    assert redact_text(text, taken) == (
        "ImportError: /home/user1/dir3/lib/libtorch_cuda.so: undefined symbol, see "
        "https://example.com/home/user1 and file=/data/dir4/file5.log. (in '/home/user1/dir1/dir2')"
    )


def test_a_closing_tag_is_no_path() -> None:
    text = "<product_name>NVIDIA A30</product_name> </gpu> </home/alice/x>"
    after = "<product_name>NVIDIA A30</product_name> </gpu> </home/user1/x>"
    assert redact_text(text, snapshot(ALICE)) == after


def test_text_of_the_kernel_stays() -> None:
    line = "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off"
    log = KernelLog(xids=[XidEvent(xid=79, message=line)], nvrm=["NVRM: loading 580.65.06"])
    found = redacted(ALICE, log).get(KernelLog)
    assert found == log


def test_redacting_twice_changes_nothing() -> None:
    once = redacted(ALICE, Interpreter(executable="/data/dir1/user1/python"))
    assert once.redacted
    assert redact(once) is once
    assert redact_text("/home/alice/x", once) == "/home/alice/x"
    read_again = decode(json.dumps(once.as_json()).encode())
    assert redact(read_again).as_json() == once.as_json()


@pytest.mark.hostile
def test_a_hostile_text_costs_little() -> None:
    taken = snapshot(ALICE, Nvml(gpus=[NvmlGpu(uuid=UUIDS[0])]))
    for text in ("/" * 200_000, "/a" * 100_000, "C:\\" * 70_000, "GPU-8f2c1c55-" * 20_000):
        assert redact_text(text, taken)


def _private(taken: Snapshot) -> list[str]:
    """Return the values that must not be found in the redacted snapshot."""
    system = taken.get(System)
    values = [system.hostname, system.home if system.home not in ("/root", "/") else ""]
    values += [gpu.uuid for gpu in taken.get(Nvml).gpus or []]
    values += [device.uuid for device in taken.get(CudaDriver).devices or []]
    address = taken.get(Environment).get("MASTER_ADDR")
    values += [address if address not in ("localhost", "127.0.0.1") else ""]
    return [value for value in values if value and value not in ORDINARY]


@pytest.mark.exhaustive
@each("name", machine_files.names(), shards=4)
def test_every_machine_is_judged_the_same_when_redacted(name: str) -> None:
    before = reported(name)
    private = before.snapshot
    public = redact(private)
    after = judged(public)
    assert [(check.slug, check.outcome) for check in after.checks] == [
        (check.slug, check.outcome) for check in before.checks
    ]
    assert [finding.slug for finding in after.findings] == [
        finding.slug for finding in before.findings
    ]
    text = msgspec.json.encode(public.as_json(), enc_hook=plain).decode()
    assert [
        value
        for value in _private(private)
        if re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", text)
    ] == []


def test_a_name_that_stands_alone_in_a_sentence_is_hidden() -> None:
    """A parameter of a sentence has no blanks around it, by which words of a text are told."""
    sentence = say(
        "{host} did not answer {user}", host="gpu-box-7", user=say("{user}", user="alice")
    )
    found = redacted(ALICE, Nvml(problems={"gpus": sentence})).get(Nvml).problem("gpus")
    assert "gpu-box-7" not in found
    assert "alice" not in found
    assert " did not answer " in found
    headline = redaction(snapshot(ALICE)).text(sentence)
    assert "gpu-box-7" not in headline
    assert "alice" not in headline


def test_a_file_within_a_private_package_has_the_pseudonym_of_its_path() -> None:
    site = "/home/alice/venv/lib/python3.11/site-packages"
    loading = CudaLibraries(
        libraries=[CudaLibrary(library="x", path=f"{site}/acme_nets/acme_nets_ops.so")]
    )
    taken = snapshot(loading, Packages(distributions=[Distribution(project="acme-nets")]))
    words = redact_text("acme_nets/acme_nets_ops.so lacks a symbol; see MIG-GPU-x/7/0", taken)
    assert "acme" not in words
    path = redact(taken).get(CudaLibraries).libraries[0].path or ""  # type: ignore[index]
    assert words.split()[0] == "/".join(path.split("/")[-2:])


def test_a_uuid_before_a_slash_is_no_file() -> None:
    uuid = "8f2c1c55-0b8d-4c39-9d2b-7f3f4c1e5a90"
    taken = snapshot(Nvml(gpus=[NvmlGpu(index=0, uuid=f"GPU-{uuid}")]))
    assert uuid not in redact_text(f"MIG-GPU-{uuid}/7/0 was not found", taken)


def test_commands_with_folders_of_the_system_stay_runnable() -> None:
    taken = snapshot(System(os="linux", user="alice"))
    for command in ("ls /run/modprobe.d", "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der"):
        assert redact_text(command, taken) == command
