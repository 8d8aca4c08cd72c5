import pytest
from each import each
from rule_facts import (
    A100,
    ALL_NODES,
    DOCKER,
    HOST,
    LINUX,
    WINDOWS,
    commands,
    cuda_fails,
    cuda_sees,
    dev,
    hit,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.driver import DeviceNode, DeviceNodes
from gpucheck.facts.request import Request
from gpucheck.facts.system import Container, Environment, System
from gpucheck.findings.form import Judgement, NotApplicable
from gpucheck.language import say

PATHS = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0")
SLURM = Environment(variables={"SLURM_JOB_ID": "4711"})


def judge(*sections: Section) -> Judgement:
    return ask("device-permission", *sections)


def slurm_nodes(*opens: str) -> DeviceNodes:
    control = DeviceNode(path="/dev/nvidiactl", is_device=True, mode="0666", opens="opens")
    numbered = [
        DeviceNode(path=f"/dev/nvidia{at}", is_device=True, mode="0666", opens=result)  # type: ignore[arg-type]  # one of OpenResult
        for at, result in enumerate(opens)
    ]
    return DeviceNodes(nodes=[control, *numbered], uid=1000)


def test_the_mode_keeps_this_user_out() -> None:
    nodes = dev(*PATHS, opens="EACCES", mode="0660")
    found = hit(judge(LINUX, HOST, nodes, cuda_fails(304)))
    assert "mode 0660" in found.headline
    assert {"device_nodes.nodes.0.opens", "device_nodes.nodes.0.mode"} <= set(found.evidence)
    assert "usermod" in commands(found)
    assert "chmod 0666" in commands(found)


def test_a_mode_for_root_alone_has_no_group() -> None:
    found = hit(judge(LINUX, HOST, dev(*PATHS, opens="EACCES", mode="0600")))
    assert "usermod" not in commands(found)


def test_a_mode_that_is_no_octal_number_keeps_this_user_out() -> None:
    found = hit(judge(LINUX, HOST, dev(*PATHS, opens="EACCES", mode="rw-rw-rw-")))
    assert "rw-rw-rw-" in found.headline


def test_where_no_device_file_is_none_is_open() -> None:
    asked = judge(LINUX, HOST, DeviceNodes(nodes=[], uid=1000))
    assert asked == NotApplicable(say("there are no device files of NVIDIA"))


def test_an_open_mode_and_still_refused() -> None:
    assert "SELinux" in hit(judge(LINUX, HOST, dev(*PATHS, opens="EACCES"))).fixes[0].text


def test_on_a_jetson_the_group_is_video() -> None:
    orin = System(os="linux", wsl=0, jetson="NVIDIA Jetson AGX Orin")
    nodes = dev("/dev/nvhost-gpu", "/dev/nvmap", opens="EACCES", mode="0660")
    assert commands(hit(judge(orin, HOST, nodes))) == 'sudo usermod -aG video "$USER"'


def test_a_container_that_lost_its_gpu() -> None:
    lost = Container(runtime="docker", injected=["/usr/bin/nvidia-smi"])
    found = hit(judge(LINUX, lost, dev(*PATHS, opens="EPERM"), cuda_fails(100)))
    assert "daemon-reload" in found.fixes[0].text
    named = "--device /dev/nvidiactl --device /dev/nvidia-uvm --device /dev/nvidia0"
    assert named in commands(found), "a GPU whose file is not named is lost again"


def test_a_container_with_bare_device_files() -> None:
    found = hit(judge(LINUX, DOCKER, dev(*PATHS, opens="EPERM")))
    assert commands(found) == "docker run --gpus all ..."


def test_a_pod_asks_for_a_gpu() -> None:
    pod = Container(runtime="kubernetes", injected=[])
    assert "nvidia.com/gpu: 1" in commands(hit(judge(LINUX, pod, dev(*PATHS, opens="EPERM"))))


def test_a_slurm_job_without_a_gpu_is_fine() -> None:
    nodes = slurm_nodes("EPERM", "EPERM")
    quiet(judge(LINUX, HOST, nodes, SLURM, cuda_fails(100)))
    found = hit(judge(LINUX, HOST, nodes, SLURM, cuda_fails(100), Request(gpus=1)))
    assert "--gres=gpu:1" in commands(found)


def test_a_slurm_job_that_was_promised_one() -> None:
    promised = Environment(variables={"SLURM_JOB_ID": "4711", "SLURM_JOB_GPUS": "1"})
    hit(judge(LINUX, HOST, slurm_nodes("EPERM", "EPERM"), promised, cuda_fails(100)))


def test_one_gpu_of_many_is_enough() -> None:
    quiet(judge(LINUX, HOST, slurm_nodes("EPERM", "opens"), SLURM, cuda_fails(999)))


@each(
    "sections",
    [
        (LINUX, HOST, ALL_NODES),
        (LINUX, HOST, dev(*PATHS, opens="EACCES"), cuda_sees(A100)),
        (LINUX, HOST, DeviceNodes(nodes=[])),
        (WINDOWS,),
    ],
)
def test_nothing_is_refused(sections: tuple[Section, ...]) -> None:
    quiet(judge(*sections))


def test_unread_is_not_allowed() -> None:
    with pytest.raises(UnknownFactError, match=r"device_nodes\.nodes"):
        judge(LINUX, HOST)
