"""Where one cause ends and the next begins: texts that nearly say the same."""

from each import each

from gpucheck import triage
from gpucheck.facts.claims import Severity

NPM = "$ npm install\nnpm ERR! code ERESOLVE\nnpm ERR! peer react@^17 from react-dom@17.0.2\n"
CARGO = "   Compiling foo v0.1.0\nerror[E0308]: mismatched types\nerror: could not compile `foo`\n"
GRADLE = "ERROR: Failed to resolve: com.android.support:appcompat-v7:28.0.0\n"
DATABASE = "django.db.utils.OperationalError: could not connect to server: Connection refused\n"
NO_DRIVER = "RuntimeError: Found no NVIDIA driver on your system.\n"
CPU_ONLY = "AssertionError: Torch not compiled with CUDA enabled\n"
NAME_AS_NUMBER = (
    "CUDA_VISIBLE_DEVICES=MIG-0a1b2c3d-1111-2222-3333-444455556666\n"
    "ValueError: invalid literal for int() with base 10: "
    "'MIG-0a1b2c3d-1111-2222-3333-444455556666'\n"
)


@each("text", [NPM, CARGO, GRADLE, DATABASE])
def test_an_error_of_another_tool_alone_is_not_about_gpus(text: str) -> None:
    report = triage(text)
    assert report.root_causes == ("not-gpu-related",)
    assert report.verdict == "broken"


@each("text", [NPM, CARGO, GRADLE])
@each(
    "beside",
    ["then torch.cuda.is_available() is False", "GPU: RTX 3090", "building the CUDA extension"],
)
def test_beside_a_word_of_gpus_it_decides_nothing(text: str, beside: str) -> None:
    report = triage(f"{text}{beside}\n")
    assert "not-gpu-related" not in report.root_causes


@each(
    "text",
    ["npm run dev works, and then the page is empty\n", "see error[E0277] of the Rust book\n",
     "git push was rejected\n", "the build fails\n"],
)  # fmt: skip
def test_what_no_tool_prints_stays_unknown(text: str) -> None:
    assert triage(text).verdict == "unknown"


@each("where", ["on my Mac", "on a MacBook Pro", "on MAC pro M1", "macOS 14"])
@each("text", [NO_DRIVER, CPU_ONLY])
def test_a_mac_has_no_nvidia_gpu(text: str, where: str) -> None:
    assert triage(f"{text}{where}\n").root_causes[0] == "no-nvidia-gpu"


@each(
    "where", ["on a machine with an RTX 3090", "C:/Users/me/env/torch", "/mnt/c/Users/me/env/torch"]
)
def test_a_machine_or_a_folder_of_windows_is_no_mac(where: str) -> None:
    assert triage(f"{CPU_ONLY}{where}\n").root_causes == ("torch-cpu-only",)


def test_windows_subsystem_for_linux_is_wsl() -> None:
    text = "OSError: libcuda.so: cannot open shared object file: No such file or directory\n"
    assert triage(text).root_causes[0] == "driver-missing"
    in_wsl = f"Ubuntu in the Windows Subsystem for Linux\n{text}"
    assert triage(in_wsl).root_causes[0] == "wsl-driver-problem"


def test_a_name_of_mig_that_a_program_takes_for_a_number_is_no_fault_of_mig() -> None:
    report = triage(NAME_AS_NUMBER)
    assert report.root_causes == ("application-bug",)
    assert report.standing[0].headline.startswith("The program fails with ValueError")
    assert {finding.severity for finding in report.standing[1:]} == {Severity.INFO}


def test_the_version_that_was_found_is_said_as_nvidia_smi_says_it() -> None:
    text = "The NVIDIA driver on your system is too old (found version 11040)."
    report = triage(f"UserWarning: CUDA initialization: {text}\n")
    found = report.standing[0]
    assert "CUDA 11.4" in found.headline
    assert found.fixes[1].commands == ("nvidia-smi",)


def test_an_accelerator_of_gaudi_needs_its_own_build() -> None:
    text = "PyTorch version: 2.5.1+cu124\nIs CUDA available: False\nHPU devices: 8x HL-225\n"
    assert triage(text).root_causes == ("torch-rocm-or-other-build",)
    assert triage(text.replace("8x HL-225", "none")).root_causes == ()
