"""What import torch stumbles over, by the files alone."""

from each import each
from rules_support import ask
from selftest_facts import failed, ran

from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.libraries import Loading, MissingLibrary
from gpucheck.facts.system import Environment, System
from gpucheck.facts.torch import Interpreter, NeededPackage, PackageSources, TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable

SLUG = "torch-import-broken"
LIB = "/v/site-packages/torch/lib"
PYTHON = Interpreter(executable="/v/bin/python", has_pip=True, externally_managed=False)


def torch(**more: object) -> TorchBuild:
    facts = {
        "installed": True, "version": "2.9.1+cu128", "metadata_version": "2.9.1",
        "path": "/v/site-packages/torch", "installer": "pip", "built_for": "cuda",
        "pins": {"nvidia-cusparse-cu12": "==12.5.8.93"},
    }  # fmt: skip
    return TorchBuild(**{**facts, **more})  # type: ignore[arg-type]


def lost(soname: str, why: str = "not found", path: str = "", **more: object) -> MissingLibrary:
    facts = {"needed_by": "libtorch_python.so", "fatal": True, **more}
    return MissingLibrary(soname=soname, why=why, path=path, **facts)  # type: ignore[arg-type]


def judge(
    *missing: MissingLibrary, build: TorchBuild | None = None, manager: str = "apt"
) -> Judgement:
    system = System(os="linux", package_manager=manager)  # type: ignore[arg-type]
    return ask(SLUG, build or torch(), PYTHON, system, Loading(missing=list(missing)))


def hit(missing: MissingLibrary, build: TorchBuild | None = None, manager: str = "apt") -> Hit:
    found = judge(missing, build=build, manager=manager)
    assert isinstance(found, Hit)
    assert found.evidence == ("loading.missing.0",)
    return found


AGAIN = "/v/bin/python -m pip install --force-reinstall --no-deps torch==2.9.1"


def test_a_library_of_torch_that_is_gone() -> None:
    found = hit(lost("libtorch_cpu.so"))
    assert found.headline == (
        "import torch fails: the loader does not find libtorch_cpu.so, which libtorch_python.so "
        "needs"
    )
    assert found.fixes[0].commands == (AGAIN,)


@each("why", ["file too short", "invalid ELF header", "the file is cut off: 1"])
def test_a_damaged_library(why: str) -> None:
    found = hit(lost("libtorch_cpu.so", why, f"{LIB}/libtorch_cpu.so"))
    assert found.headline == f"import torch fails: {LIB}/libtorch_cpu.so cannot be loaded: {why}"
    assert found.fixes[0].commands == (AGAIN,)


def test_the_index_of_a_build_with_a_local_version() -> None:
    found = hit(lost("libc10.so"), torch(metadata_version="2.9.1+cu128"))
    command = found.fixes[0].commands[0]
    assert command.endswith("torch==2.9.1+cu128 --index-url https://download.pytorch.org/whl/cu128")


@each("more", [{"installer": "conda"}, {"metadata_version": "2.9.1+gitabc"}])
def test_no_command_for_a_torch_from_elsewhere(more: dict[str, str]) -> None:
    assert hit(lost("libc10.so"), torch(**more)).fixes[0].commands == ()


def test_a_module_for_another_python() -> None:
    why = "only _C.cpython-310-x86_64-linux-gnu.so is there"
    found = hit(lost("_C.cpython-311-x86_64-linux-gnu.so", why))
    assert "no compiled module _C.cpython-311" in found.headline
    assert found.fixes[0].commands == (AGAIN,)


def test_a_library_of_the_system() -> None:
    fix = hit(lost("libgomp.so.1")).fixes[0]
    assert fix.commands == ("sudo apt-get update", "sudo apt-get install -y libgomp1")
    assert hit(lost("libgomp.so.1"), manager="dnf").fixes[0].commands == (
        "sudo dnf install -y libgomp",
    )
    assert hit(lost("libexotic.so.3")).fixes[0].commands == ()


def test_windows_has_its_own_packages() -> None:
    runtime = hit(lost("VCRUNTIME140_1.dll".lower()))
    assert "Visual C++ Redistributable" in runtime.fixes[0].text
    assert hit(lost("cudnn64_9.dll")).fixes[0].commands == (AGAIN,)


def test_a_damaged_library_of_a_wheel() -> None:
    found = hit(lost("libcusparse.so.12", "file too short", "/v/nvidia/libcusparse.so.12"))
    assert "nvidia-cusparse-cu12==12.5.8.93" in found.fixes[0].commands[0]


def test_what_has_another_name_is_fine_here() -> None:
    assert isinstance(judge(), Fine)
    assert isinstance(judge(lost("libcusparse.so.12")), Fine)
    assert isinstance(judge(lost("libexotic.so", fatal=False)), Fine)


def test_without_torch() -> None:
    assert isinstance(judge(build=TorchBuild(installed=False)), NotApplicable)


def needs(project: str, version: str, specifier: str = "", *, found: bool) -> NeededPackage:
    return NeededPackage(project=project, specifier=specifier, version=version, found=found)


def test_a_torch_of_which_only_the_metadata_is_left() -> None:
    left = ["/v/site-packages/torch-2.9.1+cpu.dist-info", "/v/site-packages/~orch"]
    build = TorchBuild(installed=False, leftovers=left)
    found = judge(build=build)
    assert isinstance(found, Hit)
    assert "pip has torch 2.9.1+cpu on record" in found.headline
    (command,) = found.fixes[0].commands
    assert "--force-reinstall --no-deps torch==2.9.1+cpu --index-url" in command
    missing = ask("torch-missing", build, PYTHON, System(os="linux"))
    assert isinstance(missing, NotApplicable)


@each(
    ("package", "command", "confidence"),
    [
        (needs("typing-extensions", "", ">=4.10.0", found=False),
         "install 'typing-extensions>=4.10.0'", Confidence.CERTAIN),
        (needs("typing-extensions", "4.15.0", ">=4.10.0", found=False),
         "install --force-reinstall 'typing-extensions>=4.10.0'", Confidence.CERTAIN),
    ],
)  # fmt: skip
def test_what_the_import_requires_is_an_error(
    package: NeededPackage, command: str, confidence: Confidence
) -> None:
    found = judge(lost("libtorch_cpu.so"), build=torch(needs=[package]))
    assert isinstance(found, Hit)
    assert (found.severity, found.confidence) == (None, confidence)
    assert found.fixes[0].commands == (f"/v/bin/python -m pip {command}",)


def test_a_release_that_is_too_old_may_have_all_that_is_used() -> None:
    build = torch(needs=[needs("typing-extensions", "4.5.0", ">=4.10.0", found=True)])
    found = judge(build=build)
    assert isinstance(found, Hit)
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.LIKELY)
    why = "ImportError: cannot import name 'TypeIs' from 'typing_extensions'"
    tried = ran(failed("import-torch", "import-failed", why))
    found = ask(SLUG, build, PYTHON, System(os="linux"), Loading(missing=[]), tried)
    assert isinstance(found, Hit)
    assert found.severity is None
    assert found.fixes[0].commands == ("/v/bin/python -m pip install 'typing-extensions>=4.10.0'",)


def test_what_is_required_later_is_a_warning_and_one_command_installs_all() -> None:
    build = torch(
        needs=[
            needs("sympy", "", ">=1.13.3", found=False),
            needs("jinja2", "3.1.6", found=True),
            needs("fsspec", "", ">=0.8.5", found=False),
        ]
    )
    found = judge(build=build)
    assert isinstance(found, Hit)
    assert found.severity is Severity.WARNING
    (command,) = found.fixes[0].commands
    assert command.endswith("pip install 'sympy>=1.13.3' 'fsspec>=0.8.5'")


@each(
    "package",
    [
        NeededPackage(project="sympy", specifier=">=1.13.3", version="", found=None),
        needs("sympy", "", ">=1.13.3", found=True),  # it has no metadata
        needs("sympy", "1.14.0.dev", ">=1.13.3", found=True),  # it cannot be compared
    ],
)
def test_a_requirement_about_which_too_little_is_known_is_no_fault(package: NeededPackage) -> None:
    assert isinstance(judge(build=torch(needs=[package])), Fine)


def test_a_library_that_the_import_does_without_is_gone() -> None:
    found = judge(build=torch(lost_libraries=["libtorch_cuda_linalg.so"]))
    assert isinstance(found, Hit)
    assert found.severity is Severity.WARNING
    assert "libtorch_cuda_linalg.so" in found.headline
    assert found.fixes[0].commands == (AGAIN,)
    assert isinstance(judge(build=torch(lost_libraries=[])), Fine)


@each(
    ("why", "words"),
    [("read-only", "mounted read-only"), ("permission", "belongs to another user")],
)
def test_an_environment_that_cannot_be_changed(why: str, words: str) -> None:
    locked = Interpreter(executable="/v/bin/python", prefix="/v", has_pip=True, locked=why)  # type: ignore[arg-type]
    gone = NeededPackage(project="typing-extensions", specifier=">=4.10.0", version="", found=False)
    build = torch(needs=[gone])
    found = ask(SLUG, build, locked, System(os="linux", package_manager="apt"), Loading(missing=[]))
    assert isinstance(found, Hit)
    (fix,) = found.fixes
    assert words in fix.text
    assert fix.commands == (
        "/v/bin/python -m venv ~/gpu-env", "~/gpu-env/bin/pip install torch==2.9.1",
    )  # fmt: skip
    assert fix.verify == "gpucheck --python ~/gpu-env/bin/python"


def test_a_damaged_file_to_which_a_variable_leads() -> None:
    missing = lost("libgomp.so.1", "file too short", "/old/lib/libgomp.so.1")
    variables = Environment(variables={"LD_LIBRARY_PATH": "/old/lib:/more"})
    found = ask(SLUG, torch(), PYTHON, System(os="linux"), Loading(missing=[missing]), variables)
    assert isinstance(found, Hit)
    assert found.fixes[0].commands == ("export LD_LIBRARY_PATH=/more",)


@each(
    ("constraints", "free"),
    [(["typing-extensions==4.5.0"], True), (["typing-extensions==4.12.0"], False), ([], False)],
)
def test_a_constraint_of_the_shell_that_forbids_it(constraints: list[str], *, free: bool) -> None:
    gone = NeededPackage(project="typing-extensions", specifier=">=4.10.0", version="", found=False)
    sources = PackageSources(pip_constraints=constraints)
    found = ask(SLUG, torch(needs=[gone]), PYTHON, System(os="linux"), Loading(missing=[]), sources)
    assert isinstance(found, Hit)
    install = "/v/bin/python -m pip install 'typing-extensions>=4.10.0'"
    before = "env PIP_CONSTRAINT=/dev/null " if free else ""
    assert found.fixes[0].commands == (f"{before}{install}",)
