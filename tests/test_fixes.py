import msgspec
from each import each
from rules_machines import (
    A100,
    DOCKER,
    GTX_1080,
    NO_CONTAINER,
    NO_TORCH,
    NO_VARIABLES,
    ORIN,
    ORIN_GPU,
    P100,
    PYTHON,
    RTX_4090,
    RTX_5090,
    UBUNTU,
    VENV,
    WINDOWS,
    nvml,
    nvml_of,
    packages,
    torch_of,
)
from rules_support import TABLES, snapshot

from gpucheck.advice import DriverFixes, Python, TorchFixes
from gpucheck.advice.interruption import Interruption
from gpucheck.advice.recommender import Offer, Recommender
from gpucheck.advice.torch_again import TorchAgain
from gpucheck.derived import Gpu
from gpucheck.derived.surroundings import Surroundings
from gpucheck.derived.wheels import wheel_platform
from gpucheck.engine import supply
from gpucheck.facts import Section
from gpucheck.facts.claims import Fix
from gpucheck.facts.driver import NvmlGpu
from gpucheck.facts.system import Environment, Pci, PciGpu, System
from gpucheck.facts.torch import Distribution, Interpreter, Packages

CPU = torch_of("2.6.0+cpu")


def python(*sections: Section) -> Python:
    made: Python = supply(Python, snapshot(*sections), TABLES)
    return made


def advice(*sections: Section) -> TorchFixes:
    made: TorchFixes = supply(TorchFixes, snapshot(NO_VARIABLES, *sections), TABLES)
    return made


def choice(*sections: Section) -> Offer:
    chosen = advice(*sections).offer()
    assert chosen is not None
    return chosen


def fix(*sections: Section) -> Fix:
    made = advice(*sections).install()
    assert made is not None
    return made


# The target's Python.


def test_pip_of_the_target_is_called_by_its_path() -> None:
    assert python(VENV).pip("install", "x") == f"{PYTHON} -m pip install x"


def test_an_unknown_python_is_called_by_its_name() -> None:
    assert python(Interpreter()).pip("install", "x") == "python -m pip install x"


def test_a_uv_environment_without_pip_is_served_by_uv() -> None:
    uv = msgspec.structs.replace(VENV, kind="uv", has_pip=False)
    assert python(uv).pip("uninstall", "-y", "torch") == (
        f"uv pip uninstall --python {PYTHON} torch"
    )
    with_pip = msgspec.structs.replace(VENV, kind="uv", has_pip=True)
    assert python(with_pip).pip("install", "x").startswith(PYTHON)


@each(
    ("system", "word", "quoted"),
    [
        (UBUNTU, "numpy<2", "'numpy<2'"),
        (UBUNTU, "my dir/$(x)", "'my dir/$(x)'"),
        (WINDOWS, "numpy<2", '"numpy<2"'),
        (WINDOWS, "torch==2.6.0", "torch==2.6.0"),
        (WINDOWS, "C:\\Program Files\\x", '"C:\\Program Files\\x"'),
        (WINDOWS, "C:\\R&D\\x", '"C:\\R&D\\x"'),
        (WINDOWS, "C:\\it\u2019s\\x", '"C:\\it\u2019s\\x"'),
        (WINDOWS, 'C:\\a"&calc&"\\x', ""),
        (WINDOWS, "C:\\a\u201d;calc;\u201cb\\x", ""),
        (WINDOWS, "C:\\$(calc)\\x", ""),
        (WINDOWS, "C:\\a\ncalc", ""),
    ],
)
def test_words_are_quoted_for_the_shell(system: Section, word: str, quoted: str) -> None:
    assert python(system).quoted([word]) == quoted


def test_torch_is_removed_with_its_companions() -> None:
    found = packages(torchvision="0.21.0", numpy="2.0.0")
    commands = python(VENV, CPU, found).remove_torch()
    assert commands == (f"{PYTHON} -m pip uninstall -y torch torchvision",)
    assert python(VENV, NO_TORCH, packages()).remove_torch() == ()


def test_conda_removes_what_conda_installed() -> None:
    found = Packages(
        distributions=[],
        conda_packages=["pytorch 2.5.1 py3.12_cpu_0 pytorch", "cpuonly 2.0 0 pytorch", ""],
    )
    torch = torch_of("2.5.1", installer="conda")
    assert python(VENV, torch, found).remove_torch() == (
        "conda remove -y --force -p /home/ada/venv pytorch cpuonly",
    )
    over_it = torch_of("2.6.0+cpu", installer="pip")
    assert len(python(VENV, over_it, found).remove_torch()) == 2


def test_variables_are_set_as_the_shell_does() -> None:
    assert python(UBUNTU).variable("A", "1") == "export A=1"
    assert python(WINDOWS).variable("A", "1") == 'set "A=1"'


@each(
    ("value", "commands"),
    [
        ("0,1", ("$env:A = '0,1'", 'set "A=0,1"')),
        ("C:\\R&D $(calc)", ("$env:A = 'C:\\R&D $(calc)'", 'set "A=C:\\R&D $(calc)"')),
        ("C:\\a';calc", ("$env:A = 'C:\\a'';calc'", 'set "A=C:\\a\';calc"')),
        ("a\u2019;calc", ("$env:A = 'a\u2019\u2019;calc'", 'set "A=a\u2019;calc"')),
        ('C:\\a"&calc', ()),
        ("a\ncalc", ()),
    ],
)
def test_a_value_is_quoted_for_powershell_and_for_cmd(
    value: str, commands: tuple[str, ...]
) -> None:
    around: Surroundings = supply(Surroundings, snapshot(WINDOWS), TABLES)
    assert around.set("A", value) == commands


def test_a_fix_with_a_command_that_no_shell_takes_has_only_its_sentence() -> None:
    careful: Interruption = supply(Interruption, snapshot(WINDOWS), TABLES)
    fix = Fix(text="Do it.", commands=("pip list", ""), verify="")
    assert careful.careful(fix, is_hardware=False) == Fix(text="Do it.")


# Which torch.


@each(
    ("gpu", "torch", "expected"),
    [
        (RTX_4090, CPU, ("2.6.0", "cu124")),
        (GTX_1080, torch_of("2.9.1+cu130", "13.0"), ("2.9.1", "cu126")),
        (P100, torch_of("2.14.0+cu130", "13.0"), ("2.14.0", "cu126")),
    ],
)
def test_the_installed_release_is_kept_where_a_build_of_it_fits(
    gpu: str, torch: Section, expected: tuple[str, str]
) -> None:
    chosen = choice(torch, nvml(gpu), UBUNTU, VENV)
    assert (chosen.torch, chosen.build) == expected


def test_the_newest_release_is_taken_where_none_of_the_installed_fits() -> None:
    chosen = choice(torch_of("2.5.1+cu124", "12.4"), nvml(RTX_5090), UBUNTU, VENV)
    assert chosen.torch != "2.5.1"
    assert chosen in Recommender(TABLES).offers("linux_x86_64").with_code_for("12.0")


def test_the_driver_limits_the_cuda() -> None:
    old = nvml(A100, driver="470.57.02", cuda="11.4")
    assert choice(NO_TORCH, old, UBUNTU, VENV).cuda.startswith("11.")
    middle = nvml(A100, driver="535.104.05", cuda="12.2")
    assert choice(NO_TORCH, middle, UBUNTU, VENV).cuda.startswith("12.")


def test_the_python_limits_the_release() -> None:
    old_python = msgspec.structs.replace(VENV, version="3.8.18")
    chosen = choice(NO_TORCH, nvml(A100), UBUNTU, old_python)
    assert chosen.torch.startswith("2.4.")


def test_the_glibc_limits_the_release() -> None:
    centos = msgspec.structs.replace(UBUNTU, distribution="centos", glibc="2.17")
    old = msgspec.structs.replace(VENV, glibc="2.17")
    chosen = choice(NO_TORCH, nvml(A100), centos, old)
    assert (chosen.torch, chosen.build, chosen.glibc) == ("2.6.0", "cu124", "2.17")
    ancient = msgspec.structs.replace(VENV, glibc="2.12")
    assert advice(NO_TORCH, nvml(A100), centos, ancient).offer() is None


def test_every_gpu_is_served_or_nothing_is_chosen() -> None:
    assert choice(NO_TORCH, nvml(P100, A100), UBUNTU, VENV).build == "cu126"
    assert advice(NO_TORCH, nvml(P100, RTX_5090), UBUNTU, VENV).offer() is None


def test_ptx_alone_is_no_ground_for_a_choice() -> None:
    future = nvml_of([NvmlGpu(index=0, device_name="R900", compute_capability="15.0")])
    assert advice(NO_TORCH, future, UBUNTU, VENV).offer() is None


@each(
    ("system", "interpreter"),
    [
        (ORIN, VENV),
        (System(os="macos", machine="arm64"), VENV),
        (msgspec.structs.replace(UBUNTU, libc="musl"), VENV),
        (UBUNTU, msgspec.structs.replace(VENV, bits=32)),
        (UBUNTU, msgspec.structs.replace(VENV, implementation="pypy")),
    ],
)
def test_where_there_are_no_wheels_nothing_is_chosen(system: Section, interpreter: Section) -> None:
    assert advice(CPU, nvml(ORIN_GPU), system, interpreter).install() is None
    gpu = ORIN_GPU if system is ORIN else A100
    assert advice(CPU, nvml(gpu), system, interpreter).offer() is None


def test_too_little_known_of_the_gpu_is_no_choice() -> None:
    assert advice(CPU, UBUNTU, VENV).offer() is None
    assert advice(CPU, nvml_of([NvmlGpu(index=0)]), UBUNTU, VENV).offer() is None


def test_gpus_that_a_mask_hides_count_and_are_named_when_left_out() -> None:
    mask = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"}
    masked = Environment(variables=mask)
    assert choice(CPU, nvml(A100, P100), UBUNTU, VENV, masked).build == "cu124"
    assert choice(torch_of("2.14.0+cpu"), nvml(A100, P100), UBUNTU, VENV, masked).build == "cu126"
    made = fix(NO_TORCH, nvml(RTX_5090, P100), UBUNTU, VENV, masked)
    assert "leaves out Tesla P100-PCIE-16GB (sm_60), which CUDA_VISIBLE_DEVICES hides" in made.text
    all_seen = advice(NO_TORCH, nvml(RTX_5090, P100), UBUNTU, VENV)
    by_conda = all_seen.install()
    assert by_conda is not None
    assert "pytorch-gpu=2.13.0 cuda-version=12.9" in " ".join(by_conda.commands)
    assert "No build of PyTorch has code for all of" in all_seen.why_none()


def test_a_hidden_gpu_of_unknown_capability_is_named() -> None:
    mask = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"}
    unheard_of = NvmlGpu(index=1, device_name="NVIDIA R900")
    ada = NvmlGpu(index=0, device_name=RTX_4090, compute_capability="8.9")
    made = fix(NO_TORCH, nvml_of([ada, unheard_of]), UBUNTU, VENV, Environment(variables=mask))
    assert "hides GPU 1 (NVIDIA R900), whose compute capability is unknown" in made.text


def test_where_the_driver_is_unknown_the_one_it_takes_is_named() -> None:
    made = fix(NO_TORCH, on_bus("8.9"), UBUNTU, VENV, NO_CONTAINER)
    assert "It needs driver " in made.text
    assert "It needs driver" not in fix(NO_TORCH, nvml(RTX_4090), UBUNTU, VENV).text


def test_a_gpu_newer_than_the_tables_is_not_said_to_have_no_build() -> None:
    gpus = [Gpu(label="R900", compute_capability="15.0", facts=())]
    assert advice(NO_TORCH, UBUNTU, VENV).has_no_build(gpus) is False
    fermi = [Gpu(label="GTX 480", compute_capability="2.0", facts=())]
    assert advice(NO_TORCH, UBUNTU, VENV).has_no_build(fermi) is True


def test_windows_on_arm_gets_no_build_for_x86() -> None:
    arm = msgspec.structs.replace(WINDOWS, machine="ARM64")
    assert advice(CPU, nvml(RTX_4090), arm, VENV).install() is None


# The commands.


def test_the_old_build_goes_first_and_companions_come_along() -> None:
    found = packages(torchvision="0.21.0+cpu", torchaudio="2.6.0+cpu")
    made = fix(CPU, nvml(RTX_4090), UBUNTU, VENV, found)
    remove, install = made.commands
    assert remove == f"{PYTHON} -m pip uninstall -y torch torchvision torchaudio"
    words = "torch==2.6.0 torchvision==0.21.0 torchaudio==2.6.0"
    index = "--index-url https://download.pytorch.org/whl/cu124"
    assert install == f"{PYTHON} -m pip install {words} {index}"
    assert made.verify == f"gpucheck --python {PYTHON}"


def test_wheels_that_write_the_same_files_go_with_the_old_build() -> None:
    cuda_13 = torch_of("2.9.1+cu130", "13.0")
    found = packages(**{"nvidia-nccl-cu13": "2.27.5", "nvidia-cublas": "13.0.0.19"})
    old_driver = nvml(RTX_4090, driver="550.54.15", cuda="12.4")
    made = fix(cuda_13, old_driver, UBUNTU, VENV, found)
    assert "whl/cu12" in made.commands[-1]
    assert made.commands[0] == f"{PYTHON} -m pip uninstall -y torch nvidia-nccl-cu13"
    assert "nvidia-nccl-cu13" in made.text


def test_a_release_without_a_fitting_build_is_named() -> None:
    old = torch_of("1.4.0+cu92", "9.2")
    assert "no build of 1.4.0" in fix(old, nvml(RTX_4090), UBUNTU, VENV, packages()).text


def test_a_companion_that_no_table_has_is_left_to_pip() -> None:
    found = Packages(distributions=[Distribution(project="torchaudio", version="2.11.0")])
    (_, install) = fix(torch_of("2.15.0+cpu"), nvml(RTX_4090), UBUNTU, VENV, found).commands
    assert "torchaudio" in install


def test_the_systems_python_gets_an_environment() -> None:
    debian = msgspec.structs.replace(
        VENV, executable="/usr/bin/python3", kind="system", externally_managed=True
    )
    made = fix(NO_TORCH, nvml(A100), UBUNTU, debian)
    update, need, make, install = made.commands
    assert update == "sudo apt-get update"
    assert need == "sudo apt-get install -y python3-venv"
    assert make == "/usr/bin/python3 -m venv ~/gpu-env"
    assert install.startswith("~/gpu-env/bin/pip install torch==")
    assert made.verify == "gpucheck --python ~/gpu-env/bin/python"


def test_torch_again_in_a_new_environment_brings_what_it_needs() -> None:
    debian = msgspec.structs.replace(VENV, kind="system", externally_managed=True)
    facts = snapshot(torch_of("2.9.1+cu128", "12.8"), UBUNTU, debian)
    *_, install = supply(TorchAgain, facts, TABLES).same().commands
    assert install.startswith("~/gpu-env/bin/pip install torch==2.9.1")


def test_a_python_with_a_space_in_its_path() -> None:
    spaced = msgspec.structs.replace(VENV, executable="/home/ada/my env/bin/python")
    made = fix(NO_TORCH, nvml(A100), UBUNTU, spaced)
    assert made.commands[0].startswith("'/home/ada/my env/bin/python' -m pip")
    assert made.verify == "gpucheck --python '/home/ada/my env/bin/python'"


def test_the_reason_is_told() -> None:
    made = advice(CPU, nvml(A100), UBUNTU, VENV).install("because of this")
    assert made is not None
    assert made.text.endswith("because of this.")


def test_the_cpu_build() -> None:
    made = advice(NO_TORCH, UBUNTU, VENV).install_cpu("there is no GPU")
    assert made is not None
    (command,) = made.commands
    assert command.startswith(f"{PYTHON} -m pip install torch==")
    assert command.endswith(" --index-url https://download.pytorch.org/whl/cpu")
    pypy = msgspec.structs.replace(VENV, implementation="pypy")
    assert advice(NO_TORCH, UBUNTU, pypy).install_cpu("x") is None


@each(
    ("system", "platform"),
    [
        (UBUNTU, "linux_x86_64"),
        (msgspec.structs.replace(UBUNTU, machine="aarch64"), "linux_aarch64"),
        (msgspec.structs.replace(UBUNTU, machine="ppc64le"), None),
        (msgspec.structs.replace(WINDOWS, machine="ARM64"), "windows_aarch64"),
        (WINDOWS, "windows"),
        (ORIN, None),
        (System(), None),
    ],
)
def test_the_platform_of_wheels(system: System, platform: str | None) -> None:
    assert wheel_platform(system) == platform


# The driver.


def driver(*sections: Section) -> DriverFixes:
    made: DriverFixes = supply(DriverFixes, snapshot(NO_CONTAINER, *sections), TABLES)
    return made


def on_bus(capability: str) -> Pci:
    address = "0000:01:00.0"
    gpu = PciGpu(address=address, device_id="2684", compute_capability=capability)
    return Pci(gpus=[gpu], nvswitches=0, jetson_gpu="")


def several(*capabilities: str) -> Pci:
    gpus = [
        PciGpu(
            address=f"0000:0{at}:00.0", product=f"board {capability}", compute_capability=capability
        )
        for at, capability in enumerate(capabilities)
    ]
    return Pci(gpus=gpus, nvswitches=0, jetson_gpu="")


def test_no_branch_is_named_where_none_drives_all() -> None:
    made = driver(UBUNTU, several("3.7", "8.9")).install()
    assert "No driver branch is known to support all GPUs" in made.text
    assert "board 3.7 at 0000:00:00.0 needs branch 470 or older" in made.text
    assert "needs branch 520 or newer" in made.text
    assert made.commands == ()
    assert driver(UBUNTU, several("6.1", "8.9")).branch() == 580


def test_no_flavour_of_the_modules_drives_both() -> None:
    both = driver(UBUNTU, several("6.1", "12.0"))
    assert both.branch() == 580
    assert "open kernel modules" in both.install().text
    assert both.install().commands == ()
    assert both.conflict()
    on_windows = driver(WINDOWS, several("6.1", "12.0"))
    assert on_windows.conflict() == ""


@each("system", [UBUNTU, WINDOWS, msgspec.structs.replace(UBUNTU, wsl=2)])
def test_no_driver_is_proposed_that_has_dropped_the_gpu(system: System) -> None:
    made = driver(system, several("3.7")).install("525.60.13")
    assert "No driver 525.60.13 or newer supports board 3.7" in made.text
    assert "branch 470 is the last" in made.text
    assert driver(system, several("3.7")).conflict("450.80.02") == ""


def test_the_last_branch_of_an_old_gpu_is_named_as_such() -> None:
    made = driver(UBUNTU, several("3.7")).install()
    assert "branch 470 (the last for this GPU, which NVIDIA no longer supports)" in made.text


def test_of_a_gpu_that_no_table_has_nothing_is_claimed() -> None:
    future = driver(UBUNTU, several("99.9"))
    assert future.branch() is None
    assert future.conflict() == ""
    assert future.install("615.10").text.startswith("Install NVIDIA driver 615.10 or newer")


def test_ubuntu_gets_the_packages_name() -> None:
    commands = driver(UBUNTU, on_bus("8.9")).install("525.60.13").commands
    assert commands[0] == "sudo apt-get update"
    assert commands[1].startswith("sudo apt-get install -y nvidia-driver-")
    assert commands[-1] == "sudo reboot"


def test_an_old_gpu_gets_the_last_branch_that_drives_it() -> None:
    assert driver(UBUNTU, on_bus("6.1")).branch() == 580
    assert driver(UBUNTU, on_bus("3.5")).branch() is None


def test_windows_wsl_and_containers_are_sent_to_the_right_place() -> None:
    assert "Windows" in driver(msgspec.structs.replace(UBUNTU, wsl=2)).install().text
    assert driver(WINDOWS).install("527.41").commands == ()
    assert "On the host" in driver(DOCKER, UBUNTU).install().text
    assert driver(DOCKER, UBUNTU).reboot("x").commands == ()
    assert driver(UBUNTU).reboot("x").commands == ("sudo reboot",)


def test_the_embeddable_python_of_windows_has_no_ensurepip() -> None:
    windows = System(os="windows", machine="x86_64")
    folder = r"C:\py"
    apart = [rf"{folder}\python312.zip", folder]
    for paths, command in (
        (apart, rf"{folder}\python.exe get-pip.py"),
        ([*apart, rf"{folder}\Lib", rf"{folder}\DLLs"], rf"{folder}\python.exe -m ensurepip"),
    ):
        embedded = msgspec.structs.replace(
            VENV, executable=rf"{folder}\python.exe", prefix=folder, kind="other", has_pip=False,
            sys_path=paths,
        )  # fmt: skip
        (*_, last) = python(embedded, windows).get_pip()
        assert last == command
        text = python(embedded, windows).install("Do it.", ["install", "numpy"]).text
        assert ("._pth" in text) is (paths is apart)
