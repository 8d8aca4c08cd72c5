import msgspec
import pytest
from each import each
from rules_machines import (
    A100,
    NO_TORCH,
    NO_VARIABLES,
    PYTHON,
    UBUNTU,
    VENV,
    commands,
    fine,
    hit,
    not_applicable,
    nvml,
    packages,
    torch_of,
)
from rules_support import ask
from wheel_facts import CUDNN_PATH, cudnn, loads, lost, torch_291, unreadable, wheels

from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Severity
from gpucheck.facts.libraries import Loading
from gpucheck.facts.torch import DamagedLibrary, NvidiaWheels, TorchBuild
from gpucheck.findings.form import Judgement

SLUG = "cudnn-missing"


def judge(
    loading: Loading, found: NvidiaWheels | None = None, torch: TorchBuild | None = None
) -> Judgement:
    return ask(SLUG, torch or torch_291(), loading, found or wheels(), VENV)


def gone(library: str, project: str = "nvidia-cudnn-cu12", state: str = "missing") -> NvidiaWheels:
    damaged = DamagedLibrary(
        project=project, version="9.10.2.21", library=library, path=CUDNN_PATH, state=state,  # type: ignore[arg-type]
        recorded_size=10, size=0, sources={"*": "RECORD"},
    )  # fmt: skip
    return wheels(damaged=[damaged])


def test_the_wheel_was_removed() -> None:
    answer = hit(judge(loads(missing=[lost("libcudnn.so.9")]), wheels({"nvidia-cudnn-cu12": ""})))
    assert answer.headline == (
        "PyTorch 2.9.1+cu128 needs libcudnn.so.9, which the loader does not find: "
        "nvidia-cudnn-cu12 is not installed"
    )
    assert answer.evidence == ("loading.missing.0", "nvidia_wheels.pins.1")
    assert commands(answer) == (
        f"{PYTHON} -m pip install --force-reinstall --no-deps nvidia-cudnn-cu12==9.10.2.21",
    )


def test_a_python_that_pip_may_not_change_gets_an_environment_with_torch() -> None:
    debian = msgspec.structs.replace(
        VENV, executable="/usr/bin/python3", kind="system", externally_managed=True
    )
    gone_wheel = wheels({"nvidia-cudnn-cu12": ""})
    missing = loads(missing=[lost("libcudnn.so.9")])
    machine = (debian, UBUNTU, packages(), NO_VARIABLES, nvml(A100))
    *_, install = commands(ask(SLUG, torch_291(), missing, gone_wheel, *machine))
    assert install.startswith("~/gpu-env/bin/pip install torch==")


def test_a_wheel_of_another_major_is_on_top() -> None:
    found = wheels({"nvidia-cudnn-cu12": "8.9.2.26"})
    answer = hit(judge(loads(missing=[lost("libcudnn.so.9")]), found))
    assert "nvidia-cudnn-cu12 8.9.2.26 is installed, not ==9.10.2.21" in answer.headline


def test_a_torch_without_pins_gets_no_command() -> None:
    torch = torch_291(pins={})
    answer = hit(judge(loads(missing=[lost("libcudnn.so.9")]), NvidiaWheels(pins=[]), torch))
    assert answer.fixes[0].commands == ()


def test_a_part_is_gone_by_the_loader() -> None:
    loading = loads(cudnn(), missing=[lost("libcudnn_ops.so.9", fatal=False)])
    answer = hit(judge(loading))
    assert "its part libcudnn_ops.so.9 is missing" in answer.headline
    assert answer.severity is None


def test_a_part_that_lacks_a_library_of_the_system() -> None:
    needed = msgspec.structs.replace(lost("libz.so.1", fatal=False), needed_by="libcudnn_ops.so.9")
    answer = hit(judge(loads(cudnn(), missing=[needed])))
    assert "libcudnn_ops.so.9 cannot be opened: it needs libz.so.1" in answer.headline
    assert answer.evidence == ("loading.missing.0",)
    of_cuda = msgspec.structs.replace(needed, soname="libcublas.so.12")
    fine(judge(loads(cudnn(), missing=[of_cuda])))


def test_a_part_is_gone_by_the_record_of_its_wheel() -> None:
    answer = hit(judge(loads(cudnn()), gone("libcudnn_graph.so.9")))
    assert answer.evidence == ("nvidia_wheels.damaged.0",)
    assert "libcudnn_graph.so.9" in answer.headline


def test_what_is_no_part_of_the_pinned_cudnn_is_no_matter() -> None:
    fine(judge(loads(cudnn()), gone("libcudnn_ops.so.9", project="nvidia-cudnn-cu13")))
    fine(judge(loads(cudnn()), gone("libcudnn_ops.so.9", state="changed")))
    fine(judge(loads(cudnn()), gone("libcublas.so.12")))
    fine(judge(loads(cudnn(), missing=[lost("libnccl.so.2")])))


@each(
    ("path", "target"),
    [
        (CUDNN_PATH, CUDNN_PATH.rpartition("/")[0]),
        ("/v/nvidia/cudnn", "/v/nvidia/cudnn"),
        ("/a b/nvidia/cudnn", "'/a b/nvidia/cudnn'"),
        ("/usr/lib/x86_64-linux-gnu/libcudnn.so.9", "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"),
    ],
)
def test_what_only_permissions_hide_is_not_installed_again(path: str, target: str) -> None:
    answer = hit(judge(loads(missing=[unreadable("libcudnn.so.9", path)])))
    assert "needs libcudnn.so.9; the file exists, but the permissions of " in answer.headline
    assert path in answer.headline
    assert commands(answer) == (f"chmod -R a+rX {target}",)


def test_a_part_that_only_permissions_hide() -> None:
    path = CUDNN_PATH.replace("libcudnn", "libcudnn_ops")
    missing = [unreadable("libcudnn_ops.so.9", path, fatal=False)]
    answer = hit(judge(loads(cudnn(), missing=missing)))
    assert "keep this user from reading it" in answer.headline
    assert not answer.refutable
    assert commands(answer)[0].startswith("chmod -R a+rX ")


@each("library", ["libcudnn_engines_tensor_ir.so.9", "libcudnn_ext.so.9"])
def test_a_part_that_the_release_in_its_place_never_had_is_not_gone(library: str) -> None:
    """CuDNN 9.10.2 put whole in the place of the pinned 9.26: cudnn-version-mismatch tells it."""
    damaged = DamagedLibrary(
        project="nvidia-cudnn-cu12", version="9.26.0.51", library=library, path=CUDNN_PATH,
        state="missing", recorded_size=10, size=0, sources={"*": "RECORD"},
    )  # fmt: skip
    fine(judge(loads(cudnn("9.10.2")), wheels(damaged=[damaged])))
    hit(judge(loads(cudnn("9.26.0")), wheels(damaged=[damaged])))
    hit(judge(loads(cudnn("9.24.0")), wheels(damaged=[damaged])))
    hit(judge(loads(cudnn(None)), wheels(damaged=[damaged])))


def test_a_part_that_every_release_has_is_gone_whatever_is_in_its_place() -> None:
    hit(judge(loads(cudnn("9.1.0")), gone("libcudnn_ops.so.9")))


def test_any_copy_that_the_loader_finds_is_fine() -> None:
    copy = cudnn(path="/usr/lib/x86_64-linux-gnu/libcudnn.so.9")
    fine(judge(loads(copy), wheels({"nvidia-cudnn-cu12": ""})))


def test_not_applicable() -> None:
    not_applicable(judge(loads(), torch=NO_TORCH))
    not_applicable(judge(loads(), torch=torch_of("2.6.0+cpu")))
    not_applicable(judge(loads()))


def test_unknown_where_the_loader_was_not_followed() -> None:
    with pytest.raises(UnknownFactError, match=r"loading\.missing"):
        judge(Loading(problems={"*": "musl"}))


def test_severity() -> None:
    from gpucheck.findings import all_rules  # noqa: PLC0415  # what the header says

    assert all_rules()[SLUG].severity is Severity.ERROR
