"""A port that the job uses is down, and ports that nobody uses."""

from each import each
from rules_support import ask

from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.driver import KernelLog, LostLink, Nvml, NvmlGpu
from gpucheck.facts.system import Environment, Network, Pci, RdmaPort
from gpucheck.findings.form import Hit, NotApplicable

GPU = Nvml(gpus=[NvmlGpu(index=0, device_name="NVIDIA H100 80GB HBM3")])
CABLE = LostLink(interface="ens4f0np0", was_up=True, seconds_ago=1200.0)
NEVER_UP = LostLink(interface="ens4f0np0", was_up=False, seconds_ago=1200.0)


def port(adapter: str, state: str | None, number: int = 1, interface: str = "") -> RdmaPort:
    beside = [interface] if interface else []
    return RdmaPort(adapter=adapter, port=number, state=state, interfaces=beside)


def judge(
    *ports: RdmaPort,
    lost: LostLink | None = None,
    gpus: Nvml = GPU,
    variables: dict[str, str] | None = None,
    **more: str,
) -> object:
    return ask(
        "nccl-infiniband",
        Environment(variables={**(variables or {}), **more}),
        Network(interfaces=[], rdma_ports=[*ports]),
        KernelLog(lost_links=[lost] if lost else []),
        gpus,
        Pci(gpus=[]),
    )


UP, DOWN = port("mlx5_0", "ACTIVE"), port("mlx5_1", "DOWN", interface="ens4f0np0")


@each("names", ["mlx5_1", "=mlx5_0,mlx5_1", "mlx5_0, mlx5_1:1", "=mlx5_1:1"])
def test_a_named_adapter_without_an_active_port(names: str) -> None:
    answer = judge(UP, DOWN, lost=CABLE, NCCL_IB_HCA=names)
    assert isinstance(answer, Hit)
    assert answer.headline == (
        "NCCL_IB_HCA names mlx5_1, whose port 1 is not active: DOWN; the link was lost 20 min ago"
    )
    assert (answer.severity, answer.confidence) == (Severity.WARNING, Confidence.LIKELY)
    assert answer.evidence == (
        "environment.variables.NCCL_IB_HCA", "network.rdma_ports.1.state",
        "kernel_log.lost_links.0.interface",
    )  # fmt: skip


def test_the_state_of_now_decides_and_the_log_gives_the_time() -> None:
    for lost in (None, NEVER_UP):
        answer = judge(UP, port("mlx5_1", "INIT"), lost=lost, NCCL_IB_HCA="mlx5_1")
        assert isinstance(answer, Hit)
        assert answer.headline == "NCCL_IB_HCA names mlx5_1, whose port 1 is not active: INIT"
    came_back = port("mlx5_1", "ACTIVE", interface="ens4f0np0")
    assert isinstance(judge(UP, came_back, lost=CABLE, NCCL_IB_HCA="mlx5_1"), NotApplicable)


def test_several_adapters_are_counted() -> None:
    many = [port(f"mlx5_{at}", "DOWN") for at in range(3)]
    answer = judge(UP, *many[1:], NCCL_IB_HCA="mlx5_1,mlx5_2")
    assert isinstance(answer, Hit)
    assert answer.headline.endswith("DOWN; the same is true of 1 more adapter")


@each(
    "ports, variables",
    [
        ((UP, DOWN), {}),
        ((UP, DOWN), {"NCCL_IB_HCA": "mlx5"}),
        ((UP, DOWN), {"NCCL_IB_HCA": "mlx5_0"}),
        ((UP, DOWN), {"NCCL_IB_HCA": "^mlx5_1"}),
        ((UP, DOWN), {"NCCL_IB_HCA": "^=mlx5_1"}),
        ((UP, DOWN), {"NCCL_IB_HCA": "=mlx5_1:2"}),
        ((UP, DOWN), {"NCCL_IB_HCA": "mlx5_1", "NCCL_IB_DISABLE": "1"}),
        ((UP, port("mlx5_10", "DOWN")), {"NCCL_IB_HCA": "mlx5_1"}),
        # Two ports of one adapter: NCCL takes the active one.
        ((port("mlx5_0", "DOWN"), port("mlx5_0", "ACTIVE", 2)), {"NCCL_IB_HCA": "mlx5_0"}),
        ((UP, port("mlx5_1", None)), {"NCCL_IB_HCA": "mlx5_1"}),
        ((DOWN, port("mlx5_2", "DOWN")), {}),
        ((), {"NCCL_IB_HCA": "mlx5_1"}),
    ],
)  # fmt: skip
def test_what_the_job_does_not_need_is_silent(
    ports: tuple[RdmaPort, ...], variables: dict[str, str]
) -> None:
    assert isinstance(judge(*ports, lost=CABLE, variables=variables), NotApplicable)


def test_the_only_port_is_a_note_if_it_had_a_link() -> None:
    answer = judge(DOWN, lost=CABLE)
    assert isinstance(answer, Hit)
    assert (answer.severity, answer.confidence) == (Severity.INFO, Confidence.POSSIBLE)
    assert answer.headline == (
        "The only RDMA port of this machine, 1 of mlx5_1, has lost its link, 20 min ago"
    )
    for lost in (None, NEVER_UP, LostLink(interface="eth0", was_up=True, seconds_ago=9.0)):
        assert isinstance(judge(DOWN, lost=lost), NotApplicable)


def test_without_a_gpu_no_job_uses_it() -> None:
    none = Nvml(gpus=[])
    assert isinstance(judge(UP, DOWN, gpus=none, NCCL_IB_HCA="mlx5_1"), NotApplicable)


def test_nothing_known_says_nothing() -> None:
    answer = ask("nccl-infiniband", Environment(variables={"NCCL_IB_HCA": "mlx5_1"}), GPU)
    assert isinstance(answer, NotApplicable)
