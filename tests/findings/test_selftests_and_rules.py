"""What self-tests point at, what their passing withdraws, and what it does not."""

import msgspec
from each import each
from rule_facts import (
    A100,
    CUDA_TORCH,
    HOST,
    LINUX,
    NO_VARIABLES,
    cuda_sees,
    libcuda,
    nvml,
    on_bus,
)
from rules_support import TABLES, ask, snapshot
from selftest_facts import failed, ran, result
from wheel_facts import cudnn, loads, lost, torch_291, wheels

from gpucheck.engine import diagnose, open_questions
from gpucheck.facts import Section
from gpucheck.facts.driver import CudaDriver, DeviceNode, DeviceNodes, Driver, Nvml
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Hit, Outcome

MODULE = Driver(
    module_loaded=True, module_release="535.183.01", libcuda=[libcuda()], uvm_loaded=True
)
NODES = DeviceNodes(
    nodes=[
        DeviceNode(path=path, is_device=True, opens="opens")
        for path in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm")
    ]
)
MACHINE = (LINUX, HOST, NO_VARIABLES, on_bus(A100), CUDA_TORCH, MODULE, NODES)
UNASKED = CudaDriver(problems={"*": "timed-out: no answer in cuInit after 30 s"})
PROVED = ("device-placement", "cublas-matmul", "cudnn-convolution")


def cuda_error(code: int) -> SelfTests:
    return ran(
        failed("import-torch", "cuda-unavailable", device="cpu", data={"cuda_code": code}),
        devices=(),
    )


@each(
    ("slug", "code"),
    [
        ("fabric-manager-down", 802),
        ("driver-library-mismatch", 803),
        ("forward-compat-unsupported", 804),
        ("libcuda-stub-loaded", 34),
        ("device-nodes-missing", 999),
        ("driver-too-old", 222),
    ],
)
def test_an_error_of_a_self_test_points_at_the_cause(slug: str, code: int) -> None:
    facts = (*MACHINE, nvml(A100), UNASKED)
    found = ask(slug, *facts, cuda_error(code))
    assert isinstance(found, Hit), found
    assert "selftests.results.0.detail" in found.evidence
    assert outcome(slug, *facts, cuda_error(1))[0] is not Outcome.FIRED
    everything = diagnose(snapshot(*facts, cuda_error(code)), TABLES)
    assert everything.standing[0].slug == slug
    causes = {finding.slug: finding.silenced_by for finding in everything.findings}
    assert causes["selftest-failed"] == slug


def test_a_gpu_in_exclusive_mode_that_is_taken() -> None:
    gpus = nvml(A100).gpus or []
    gpu = msgspec.structs.replace(gpus[0], compute_mode="exclusive-process", processes=[])
    held = Nvml(init_code=0, gpus=[gpu])
    taken = ran(failed("device-placement", "cuda-error", data={"cuda_code": 46}))
    found = ask("compute-mode-exclusive", *MACHINE, held, cuda_sees(A100), taken)
    assert isinstance(found, Hit)
    assert not isinstance(ask("compute-mode-exclusive", *MACHINE, held, cuda_sees(A100)), Hit)


OLD_DRIVER = nvml(A100, release="470.199.02", cuda="11.4")
OLD_CUDA = msgspec.structs.replace(cuda_sees(A100), cuda="11.4")


def outcome(slug: str, *sections: Section) -> tuple[Outcome, str]:
    found = diagnose(snapshot(*sections), TABLES)
    (check,) = [check for check in found.checks if check.slug == slug]
    return check.outcome, check.reason


def old_driver(*more: Section) -> tuple[Outcome, str]:
    return outcome("driver-too-old", *MACHINE, OLD_DRIVER, OLD_CUDA, *more)


def test_passed_self_tests_withdraw_what_they_disprove() -> None:
    assert old_driver()[0] is Outcome.FIRED
    passed = ran(*(result(name) for name in PROVED))
    kind, reason = old_driver(passed)
    assert kind is Outcome.FINE
    assert reason.startswith(
        "ruled out by self-tests that passed (device-placement and cublas-matmul)"
    )


@each(
    "tests",
    [
        ran(),
        ran(result("device-placement")),
        ran(result("device-placement"), failed("cublas-matmul", "cublas-status")),
        ran(result("device-placement"), result("cublas-matmul", "skipped")),
        ran(result("device-placement", device="cpu"), result("cublas-matmul", device="cpu")),
        ran(*(result(name) for name in PROVED), devices=("cuda:0", "cuda:1")),
        ran(*(result(name) for name in PROVED), devices=()),
    ],
)
def test_nothing_less_withdraws_anything(tests: SelfTests) -> None:
    assert old_driver(tests)[0] is not Outcome.FINE


def test_a_gpu_that_torch_does_not_see_was_not_tested() -> None:
    """Of two GPUs the driver serves one: what is said of the other is not disproved."""
    two = (LINUX, HOST, NO_VARIABLES, on_bus(A100, A100), CUDA_TORCH, MODULE, NODES)
    passed = ran(*(result(name) for name in PROVED))
    kind, _reason = outcome("driver-too-old", *two, OLD_DRIVER, OLD_CUDA, passed)
    assert kind is Outcome.FIRED


def test_a_passed_self_test_withdraws_no_other_finding() -> None:
    passed = ran(*(result(name) for name in PROVED))
    found = diagnose(snapshot(*MACHINE, OLD_DRIVER, OLD_CUDA, passed), TABLES)
    before = diagnose(snapshot(*MACHINE, OLD_DRIVER, OLD_CUDA), TABLES)
    gone = {f.slug for f in before.findings} - {f.slug for f in found.findings}
    assert gone <= {"driver-too-old", "gpu-too-old-for-torch", "gpu-too-new-for-torch"}


TORCH = torch_291()
PASSED = ran(*(result(name) for name in PROVED))


@each(
    ("slug", "fact", "is_refuted"),
    [
        ("cudnn-missing", loads(missing=[lost("libcudnn.so.9")]), True),
        ("cudnn-missing", loads(missing=[lost("libcudnn_adv.so.9", fatal=False)]), False),
        ("cudnn-version-mismatch", loads(cudnn("9.1.0")), True),
    ],
)
def test_a_convolution_refutes_what_it_uses_of_cudnn(
    slug: str,
    fact: Section,
    is_refuted: bool,  # noqa: FBT001
) -> None:
    machine = (LINUX, HOST, NO_VARIABLES, on_bus(A100), TORCH, MODULE, NODES, wheels(), fact)
    assert outcome(slug, *machine)[0] is Outcome.FIRED
    assert outcome(slug, *machine, PASSED)[0] is (Outcome.FINE if is_refuted else Outcome.FIRED)


def test_a_warned_of_cudnn_is_not_refuted() -> None:
    """PyTorch was told not to compare: a convolution does not use what the older cuDNN lacks."""
    environment = Environment(variables={"PYTORCH_SKIP_CUDNN_COMPATIBILITY_CHECK": "1"})
    machine = (LINUX, HOST, environment, on_bus(A100), TORCH, MODULE, NODES, wheels())
    kind, _reason = outcome("cudnn-version-mismatch", *machine, loads(cudnn("9.1.0")), PASSED)
    assert kind is Outcome.FIRED


@each(
    ("kind", "slug"),
    [
        ("loss-not-falling", "wrong-result"),
        ("wrong-device", "selftest-failed"),
        ("devices-mixed", "selftest-failed"),
        ("memory-not-returned", "selftest-failed"),
        ("out-of-memory-not-raised", "selftest-failed"),
        ("compiler-missing", "compiler-missing"),
    ],
)
def test_each_kind_has_one_finding(kind: str, slug: str) -> None:
    facts = snapshot(*MACHINE, nvml(A100), cuda_sees(A100), ran(failed("memory", kind)))
    found = [finding.slug for finding in diagnose(facts, TABLES).findings]
    assert [kind_of_test for kind_of_test in found if kind_of_test in KINDS_BELONG_TO] == [slug]


KINDS_BELONG_TO = ("wrong-result", "selftest-failed", "compiler-missing", "out-of-memory")


def test_a_test_that_passed_on_every_gpu_closes_the_decisive_questions() -> None:
    assert open_questions(snapshot(), TABLES)
    assert open_questions(snapshot(ran(result("cublas-matmul"))), TABLES) == ()
    on_cpu = ran(result("cublas-matmul", device="cpu"), devices=())
    assert open_questions(snapshot(on_cpu), TABLES)
