"""The interface that NCCL or Gloo is told to use is down, and others that are."""

from each import each
from rules_support import ask

from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.driver import KernelLog, LostLink, Nvml, NvmlGpu
from gpucheck.facts.system import Environment, Network, NetworkInterface
from gpucheck.findings.form import Hit, NotApplicable

GPU = Nvml(gpus=[NvmlGpu(index=0, device_name="NVIDIA H100 80GB HBM3")])
LOST = [LostLink(interface="eth1", was_up=True, seconds_ago=7200.0)]


def judge(states: dict[str, str | None], **variables: str) -> object:
    interfaces = [NetworkInterface(interface=name, state=of) for name, of in states.items()]
    return ask(
        "nccl-network-interface",
        Environment(variables=variables),
        Network(interfaces=interfaces),
        KernelLog(lost_links=LOST),
        GPU,
    )


@each("state", ["down", "lowerlayerdown"])
@each("variable", ["NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"])
def test_every_interface_that_is_named_is_down(variable: str, state: str) -> None:
    answer = judge({"eth1": state}, **{variable: "eth1"})
    assert isinstance(answer, Hit)
    assert answer.headline == f"{variable} names eth1, which is down; the link was lost 2 hours ago"
    assert (answer.severity, answer.confidence) == (Severity.WARNING, Confidence.LIKELY)
    assert answer.evidence == (
        f"environment.variables.{variable}", "network.interfaces.0.state",
        "kernel_log.lost_links.0.interface",
    )  # fmt: skip


def test_several() -> None:
    answer = judge({"eth2": "down", "eth3": "down"}, NCCL_SOCKET_IFNAME="eth2,eth3")
    assert isinstance(answer, Hit)
    assert answer.headline == "NCCL_SOCKET_IFNAME names eth2 and eth3, which are down"


@each(
    "states, value",
    [
        ({"eth0": "up", "eth1": "down"}, "eth"),
        ({"eth0": "up", "eth1": "down"}, "=eth0"),
        ({"eth1": "down"}, "^eth1"),
        ({"eth1": "down"}, "^=eth1"),
        ({"eth1": "down"}, "=eth"),
        ({"eth1": "down"}, ""),
        ({"eth1": "unknown"}, "eth1"),  # what many virtual interfaces say, and they work
        ({"eth1": None}, "eth1"),
        ({}, "eth1"),
    ],
)
def test_what_is_silent(states: dict[str, str | None], value: str) -> None:
    assert isinstance(judge(states, NCCL_SOCKET_IFNAME=value), NotApplicable)
