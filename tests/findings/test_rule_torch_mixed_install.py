import msgspec
import pytest
from each import each
from rules_machines import (
    NO_TORCH,
    NO_VARIABLES,
    PYTHON,
    RTX_4090,
    SITE,
    UBUNTU,
    VENV,
    WINDOWS,
    commands,
    fine,
    hit,
    not_applicable,
    nvml,
    packages,
    torch_of,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Severity
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import Interpreter, TorchBuild, TorchInstall
from gpucheck.findings.form import Judgement

SLUG = "torch-mixed-install"
OWN = TorchInstall(path=f"{SITE}/torch", version="2.6.0+cu124", kind="package")
USER_SITE = "/home/ada/.local/lib/python3.12/site-packages"
IN_USER_SITE = TorchInstall(path=f"{USER_SITE}/torch", version="2.4.1+cu121", kind="package")
STRAY_FILE = TorchInstall(path="/home/ada/work/torch.py", kind="module")
STRAY_FOLDER = TorchInstall(path="/home/ada/work/torch", kind="folder")
CONDA = msgspec.structs.replace(VENV, kind="conda")


def installed(*installs: TorchInstall, **more: object) -> TorchBuild:
    first = next((install for install in installs if install.kind == "package"), OWN)
    torch = torch_of(first.version or "2.6.0", "12.4", installs=list(installs), path=first.path)
    return msgspec.structs.replace(torch, **more)


def judge(
    torch: TorchBuild, interpreter: Interpreter = VENV, system: Section = UBUNTU
) -> Judgement:
    return ask(SLUG, torch, interpreter, system, NO_VARIABLES, packages())


def test_one_torch_is_fine() -> None:
    fine(judge(installed(OWN)))


def test_no_torch_at_all_is_another_finding() -> None:
    not_applicable(judge(NO_TORCH))
    half_removed = TorchBuild(installed=False, installs=[], leftovers=[f"{SITE}/~orch"])
    not_applicable(judge(half_removed))


def test_nothing_known_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.installs"):
        judge(TorchBuild(installed=True))


@each("field", ["version", "metadata_version"])
def test_an_unknown_version_is_unknown(field: str) -> None:
    with pytest.raises(UnknownFactError, match=rf"torch\.{field}"):
        judge(installed(OWN, **{field: None}))


@each("is_installed", [True, False])
def test_a_file_called_torch_is_taken_first(is_installed: bool) -> None:  # noqa: FBT001  # a parameter
    torch = TorchBuild(
        installed=is_installed, path=STRAY_FILE.path, installs=[STRAY_FILE, OWN], leftovers=[]
    )
    answer = hit(judge(torch))
    assert "/home/ada/work/torch.py instead of the installed PyTorch" in answer.headline
    assert answer.evidence == ("torch.installs.0",)
    assert commands(answer) == ("mv /home/ada/work/torch.py /home/ada/work/not_torch.py",)


def test_a_file_alone_is_told_as_well() -> None:
    torch = TorchBuild(installed=False, path="", installs=[STRAY_FILE], leftovers=[])
    answer = hit(judge(torch))
    assert "torch.py instead of PyTorch" in answer.headline
    assert "PyTorch itself is not installed here" in answer.fixes[0].text


def test_on_windows_the_file_is_renamed_the_windows_way() -> None:
    stray = TorchInstall(path="C:\\my work\\torch.py", kind="module")
    torch = TorchBuild(installed=False, path="", installs=[stray], leftovers=[])
    assert commands(judge(torch, system=WINDOWS)) == ('ren "C:\\my work\\torch.py" not_torch.py',)


def test_a_folder_that_wins_is_told() -> None:
    torch = TorchBuild(
        installed=False, path=STRAY_FOLDER.path, installs=[STRAY_FOLDER, OWN], leftovers=[]
    )
    assert "the folder /home/ada/work/torch" in hit(judge(torch)).headline


def test_a_folder_that_loses_to_the_package_is_fine() -> None:
    fine(judge(installed(STRAY_FOLDER, OWN)))


@each("metadata", ["2.6.0", "2.6.0+cu124"])
def test_a_local_version_makes_no_mixture(metadata: str) -> None:
    fine(judge(installed(OWN, metadata_version=metadata)))


def test_two_versions_in_one_place_overwrote_each_other() -> None:
    torch = installed(OWN, metadata_version="2.5.1")
    answer = hit(judge(torch))
    assert answer.evidence == ("torch.version", "torch.metadata_version")
    assert answer.severity is None
    removal, install = commands(answer)
    assert removal == f"{PYTHON} -m pip uninstall -y torch"
    assert "torch==2.6.0+cu124" in install


def test_on_a_machine_with_a_gpu_it_is_installed_afresh() -> None:
    torch = installed(OWN, metadata_version="2.5.1")
    answer = ask(SLUG, torch, VENV, UBUNTU, NO_VARIABLES, packages(), nvml(RTX_4090))
    assert "torch==2.6.0" in commands(answer)[-1]


def test_each_version_is_removed_with_the_wheels_of_another_cuda() -> None:
    left = [f"{SITE}/torch-{version}.dist-info" for version in ("2.5.1", "2.6.0")]
    torch = installed(OWN, metadata_version="2.6.0", leftovers=left)
    both = packages(**{"nvidia-nccl-cu13": "2.27.5"})
    answer = ask(SLUG, torch, VENV, UBUNTU, NO_VARIABLES, both, nvml(RTX_4090))
    first, second, install = commands(answer)
    assert first == second == f"{PYTHON} -m pip uninstall -y torch nvidia-nccl-cu13"
    assert "torch==2.6.0" in install


def test_the_user_site_over_a_conda_environment() -> None:
    answer = hit(judge(installed(IN_USER_SITE, OWN), CONDA))
    assert "2.4.1+cu121" in answer.headline
    assert "2.6.0+cu124" in answer.headline
    assert answer.severity is None
    assert answer.evidence == ("torch.installs.0", "torch.installs.1", "interpreter.prefix")
    assert commands(answer) == ("export PYTHONNOUSERSITE=1",)
    removal = f"env -u PYTHONNOUSERSITE {PYTHON} -m pip uninstall -y torch"
    assert commands(answer, 1) == (removal,)


def test_pythonpath_over_the_environment() -> None:
    module = TorchInstall(path="/opt/modules/torch", version="2.1.0", kind="package")
    answer = hit(judge(installed(module, OWN)))
    assert "remove /opt/modules from PYTHONPATH" in answer.fixes[0].text


@each(
    ("value", "command"),
    [
        ("/opt/modules", "unset PYTHONPATH"),
        ("/none:/opt/modules/", "export PYTHONPATH=/none"),
        (":/opt/modules:", "unset PYTHONPATH"),
    ],
)
def test_pythonpath_is_named_where_it_led_there(value: str, command: str) -> None:
    module = TorchInstall(path="/opt/modules/torch", version="2.1.0", kind="package")
    variables = Environment(variables={"PYTHONPATH": value})
    answer = hit(ask(SLUG, installed(module, OWN), VENV, UBUNTU, variables, packages()))
    assert "/opt/modules/torch, which is on PYTHONPATH, hides" in answer.headline
    assert "environment.variables.PYTHONPATH" in answer.evidence
    assert commands(answer) == (command,)


def test_without_a_prefix_it_is_a_warning() -> None:
    nowhere = msgspec.structs.replace(CONDA, prefix=None)
    assert hit(judge(installed(IN_USER_SITE, OWN), nowhere)).severity is Severity.WARNING


def test_the_same_version_twice_is_fine() -> None:
    twin = TorchInstall(path=f"{USER_SITE}/torch", version="2.6.0+cu124", kind="package")
    fine(judge(installed(twin, OWN), CONDA))


def test_a_torch_behind_the_environments_own_is_fine() -> None:
    fine(judge(installed(OWN, IN_USER_SITE)))


@each("kind", ["system", "other", "pyenv"])
def test_pip_install_user_over_the_systems_package_is_fine(kind: str) -> None:
    debian = TorchInstall(
        path="/usr/lib/python3/dist-packages/torch", version="2.1.2", kind="package"
    )
    system_python = msgspec.structs.replace(VENV, kind=kind, prefix="/usr")
    fine(judge(installed(IN_USER_SITE, debian), system_python))


def test_an_unknown_version_of_one_of_two_is_unknown() -> None:
    nameless = TorchInstall(path=f"{USER_SITE}/torch", kind="package")
    for other in (OWN, TorchInstall(path=f"{SITE}/torch", kind="package")):
        with pytest.raises(UnknownFactError, match="version of one of them"):
            judge(installed(nameless, other), CONDA)
    hit(judge(installed(IN_USER_SITE, OWN, TorchInstall(kind="package")), CONDA))


def test_leftovers_of_pip_are_only_mentioned() -> None:
    answer = hit(judge(installed(OWN, leftovers=[f"{SITE}/~orch"])))
    assert answer.severity is Severity.INFO
    assert answer.evidence == ("torch.leftovers",)


def test_metadata_of_two_versions_is_a_warning() -> None:
    """``pip list`` says one of them, and the other is imported."""
    both = [f"{SITE}/torch-2.4.1.dist-info", f"{SITE}/torch-2.6.0+cu124.dist-info"]
    torch = installed(OWN, leftovers=both, version="2.6.0+cu124", metadata_version="2.6.0+cu124")
    answer = hit(judge(torch))
    assert answer.severity is Severity.WARNING
    assert "2.6.0+cu124 is imported" in answer.headline
    assert "there is also metadata of torch 2.4.1" in answer.headline
    assert "rm " not in "".join(commands(answer))


def test_each_version_on_record_is_removed_before_one_is_installed() -> None:
    """One removal takes one of them; with the other's metadata left it would install nothing."""
    both = [f"{SITE}/torch-2.4.1.dist-info", f"{SITE}/torch-2.6.0+cu124.dist-info"]
    removal = f"{VENV.executable} -m pip uninstall -y torch"
    for metadata in ("2.6.0+cu124", "2.4.1"):
        torch = installed(OWN, leftovers=both, version="2.6.0+cu124", metadata_version=metadata)
        gpu = nvml(RTX_4090)
        fix = hit(ask(SLUG, torch, VENV, UBUNTU, NO_VARIABLES, packages(), gpu)).fixes[0]
        assert fix.commands[:2] == (removal, removal)
        assert "install torch==2.6.0" in fix.commands[2]


def test_a_prefix_is_no_prefix_of_a_longer_name() -> None:
    beside = TorchInstall(path="/home/ada/venv2/torch", version="2.1.0", kind="package")
    hit(judge(installed(beside, OWN)))


ARCHIVE = TorchInstall(path="/home/ada/code.zip", kind="archive")


def with_archive(pythonpath: str) -> Judgement:
    torch = TorchBuild(installed=False, path=ARCHIVE.path, installs=[ARCHIVE, OWN])
    variables = Environment(variables={"PYTHONPATH": pythonpath} if pythonpath else {})
    return ask(SLUG, torch, VENV, UBUNTU, variables, packages())


def test_an_archive_on_pythonpath() -> None:
    found = hit(with_archive("/home/ada/code.zip:/home/ada/lib"))
    assert "/home/ada/code.zip" in found.headline
    assert commands(found) == ("export PYTHONPATH=/home/ada/lib",)


def test_an_archive_that_something_else_adds() -> None:
    found = hit(with_archive(""))
    assert found.fixes[0].commands == ()
    assert ".pth" in found.fixes[0].text


def test_an_archive_behind_the_installed_torch_is_fine() -> None:
    fine(judge(installed(OWN, ARCHIVE)))


def test_a_uv_environment_gets_the_index_that_no_variable_overrides() -> None:
    uv = msgspec.structs.replace(VENV, kind="uv", has_pip=False)
    two = installed(
        OWN, leftovers=[f"{SITE}/torch-{version}.dist-info" for version in ("2.4.0", "2.6.0")]
    )
    torch = msgspec.structs.replace(two, version="2.6.0+cpu", metadata_version="2.6.0+cpu", cuda="",
                                    built_for="cpu")  # fmt: skip
    found = hit(judge(torch, uv))
    (command,) = [command for command in commands(found) if " install " in command]
    assert "--default-index https://download.pytorch.org/whl/cpu" in command
    assert "--index-url" not in command
