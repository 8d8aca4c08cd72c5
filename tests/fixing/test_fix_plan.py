"""Which fix of which finding becomes a step, and what is left for whom."""

from pathlib import Path

import report_samples as samples
from msgspec.structs import replace

from gpucheck.engine import Report
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.findings.form import Finding
from gpucheck.fixing.permitted import Place
from gpucheck.fixing.plan import EnvironmentProject, FixPlan, plan, project_of

PLACE = Place(
    python="/env/bin/python", prefix="/env", packages=("/env/lib",), scripts="/env/bin",
    home="/env/.gpucheck", kind="venv",
)  # fmt: skip
PIP = "/env/bin/python -m pip"
ROOT = Fix(text="Update.", commands=("sudo apt-get install -y cuda-drivers",),
           classes=("interrupts",))  # fmt: skip
TORCH = Fix(
    text="Install.",
    commands=(f"{PIP} uninstall -y torch", f"{PIP} install torch==2.6.0"),
    classes=("environment", "environment"),
)
NUMPY = Fix(text="Numpy.", commands=(f"{PIP} install 'numpy<2'",), classes=("environment",))
SHELL = Fix(text="Set it.", commands=("export A=1",), classes=("environment",))


def finding(slug: str, *fixes: Fix, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(
        slug=slug, severity=severity, confidence=Confidence.CERTAIN, headline=slug, evidence=(),
        fixes=fixes,
    )  # fmt: skip


def made(*findings: Finding, place: Place | None = PLACE, refused: str = "") -> FixPlan:
    report: Report = replace(samples.old_driver(), findings=findings)
    return plan(report, place, None, lambda _name: True, lock=False, refused=refused)


def test_the_first_fix_that_may_be_run() -> None:
    found = made(finding("driver-too-old", ROOT, TORCH))
    assert [step.slugs for step in found.steps] == [("driver-too-old",)]
    assert [command.text for command in found.steps[0].commands] == list(TORCH.commands)
    assert found.left == ()


def test_what_each_command_changes_is_said() -> None:
    pip = Fix(text="Pip.", commands=("/env/bin/python -m ensurepip",), classes=("environment",))
    (step,) = made(finding("torch-missing", pip)).steps
    assert step.changes == ("Installs the pip that belongs to this Python.",)
    (step,) = made(finding("driver-too-old", TORCH)).steps
    removed, installed = step.changes
    assert removed.startswith("Removes torch")
    assert "torch==2.6.0" in installed


def test_what_is_left_for_whom() -> None:
    found = made(
        finding("driver-too-old", ROOT), finding("shm-too-small", SHELL),
        finding("gpu-hardware-fault", Fix(text="Replace it.")), finding("unfixable"),
    )  # fmt: skip
    assert found.steps == ()
    assert [(fix_left.slug, fix_left.who) for fix_left in found.left] == [
        ("driver-too-old", "administrator"), ("shm-too-small", "you"),
        ("gpu-hardware-fault", "you"),
    ]  # fmt: skip


def test_a_fix_half_of_which_is_not_run_is_not_begun() -> None:
    half = replace(TORCH, commands=(*TORCH.commands, "export A=1"))
    assert made(finding("torch-missing", half)).steps == ()


def test_one_step_for_two_findings_with_the_same_fix() -> None:
    found = made(finding("a", TORCH), finding("b", TORCH))
    assert [step.slugs for step in found.steps] == [("a", "b")]


def test_nothing_that_was_worked_out_for_another_torch() -> None:
    found = made(finding("a", TORCH), finding("b", NUMPY))
    assert [step.slugs for step in found.steps] == [("a",)]
    assert [(fix_left.slug, fix_left.who) for fix_left in found.left] == [("b", "later")]


def test_notes_and_suppressed_findings_are_left_alone() -> None:
    silenced = replace(finding("b", TORCH), silenced_by="a")
    assert made(finding("a", TORCH, severity=Severity.INFO), silenced) == FixPlan(steps=(), left=())


def test_without_a_place_everything_is_left_with_the_reason() -> None:
    found = made(finding("a", TORCH), place=None, refused="It is locked.")
    assert [(fix_left.who, fix_left.reason) for fix_left in found.left] == [
        ("you", "It is locked.")
    ]


def test_a_program_that_is_not_there_runs_nothing() -> None:
    report = replace(samples.old_driver(), findings=(finding("a", TORCH),))
    assert plan(report, PLACE, None, lambda _name: False, lock=False).steps == ()


def at(folder: Path) -> EnvironmentProject | None:
    return project_of(replace(PLACE, prefix=str(folder)))


def test_projects_by_the_files_beside_the_environment(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    assert at(tmp_path / ".venv") is None
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert at(tmp_path / ".venv") is None
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n[tool.uv]\n")
    for tool in ("uv", "pdm", "poetry", "uv"):
        found = at(tmp_path / ".venv")
        assert found is not None
        (tmp_path / f"{tool}.lock").touch()
        found = at(tmp_path / ".venv")
        assert found is not None
        assert found.lock.endswith(f"{tool}.lock")
        (tmp_path / f"{tool}.lock").unlink()
    assert at(tmp_path / "other") is None
    pixi = at(tmp_path / ".pixi/envs/default")
    assert pixi is not None
    assert (pixi.tool, pixi.folder) == ("pixi", str(tmp_path))


def test_with_lock_the_tool_of_the_project_is_run(tmp_path: Path) -> None:
    project = EnvironmentProject(tool="uv", folder=str(tmp_path), lock=str(tmp_path / "uv.lock"))
    fix = replace(
        TORCH, commands=(f"{PIP} install torch==2.6.0 --index-url https://x.org/whl/cpu",)
    )
    report = replace(samples.old_driver(), findings=(finding("a", fix),))
    (step,) = plan(report, PLACE, project, lambda _name: True, lock=True).steps
    assert [command.text for command in step.commands] == [
        f"uv add --project {tmp_path} --index pytorch-cpu=https://x.org/whl/cpu torch==2.6.0"
    ]


def test_packages_that_gpucheck_runs_on_are_left_alone() -> None:
    own = Fix(text="Msgspec.", commands=(f"{PIP} install msgspec==0.20",), classes=("environment",))
    inside = replace(PLACE, holds_gpucheck=True)
    found = made(finding("a", own), finding("b", TORCH), place=inside)
    assert [step.slugs for step in found.steps] == [("b",)]
    assert [(fix_left.slug, fix_left.who) for fix_left in found.left] == [("a", "you")]
    assert "uses itself" in found.left[0].reason
    assert [step.slugs for step in made(finding("a", own)).steps] == [("a",)]


def test_pip_with_an_address_is_left_with_the_true_reason() -> None:
    wheel = f"{PIP} install https://example.org/torch-2.4.0-cp310-cp310-linux_aarch64.whl"
    page = f"{PIP} install torch==1.7.1+cu110 --find-links https://example.org/torch_stable.html"
    for command in (wheel, page):
        fix = replace(TORCH, commands=(command,), classes=("environment",))
        (left,) = made(finding("torch-missing", fix)).left
        assert left.who == "you"
        assert "address of a wheel" in left.reason
    (shell,) = made(finding("shm-too-small", SHELL)).left
    assert "address of a wheel" not in shell.reason
