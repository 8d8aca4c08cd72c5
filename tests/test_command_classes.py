"""What the commands of fixes do to a machine and to others, and what is said before them."""

import msgspec
import pytest
from each import each
from rules_machines import DOCKER, NO_CONTAINER, UBUNTU, nvml_of
from rules_support import TABLES, snapshot
from test_machines import EACH, reported

from gpucheck.advice import interruption
from gpucheck.advice.command_class import class_of
from gpucheck.advice.interruption import Interruption
from gpucheck.engine import supply
from gpucheck.facts import Section
from gpucheck.facts.claims import CLASSES, Fix
from gpucheck.facts.driver import GpuProcess, NvmlGpu
from gpucheck.facts.system import LimitsOfProcess, Pci, System
from gpucheck.findings import all_rules
from gpucheck.language import speaking, spoken
from gpucheck.log_patterns.loading import all_messages
from gpucheck.output import markdown, terminal
from gpucheck.ticket.judge import triage
from gpucheck.ticket.ticket_reply import reply

pytestmark = pytest.mark.every_finding


@each(
    ("command", "expected"),
    [
        ("nvidia-smi -L", "reads"),
        ("sudo dmesg | grep -i 'xid|reboot' | tail", "reads"),
        ("python -m pip list", "reads"),
        ("python3 --version", "reads"),
        ("python -m pip install torch==2.6.0", "environment"),
        (r"C:\venv\Scripts\python.exe -m pip uninstall -y torch", "environment"),
        ("'/home/my env/bin/python' -m pip install torch", "environment"),
        ("export CUDA_VISIBLE_DEVICES=0", "environment"),
        ("wget -O torch-1.10.0.whl https://example.org/a.whl", "environment"),
        ("env -u PYTHONNOUSERSITE python -m pip uninstall -y torch", "environment"),
        ("chmod -R a+rX /home/ana/venv", "environment"),
        ("sudo chmod 0666 /dev/nvidia0", "machine"),
        ("printf 'x; reboot' | sudo tee /etc/x.conf", "machine"),
        ("sudo apt-get install -y gcc-14", "machine"),
        ("sudo apt-get install -y nvidia-driver-580-open", "interrupts"),
        ("sudo apt-get install -y 'libnvidia-compute-550=550.163.01-*'", "machine"),
        ("sudo apt-get install -y libnvidia-compute-550", "interrupts"),
        ("sudo nvidia-smi -i 0 -c DEFAULT", "machine"),
        ("sudo nvidia-smi --gpu-reset -i 0", "interrupts"),
        ("nvidia-smi && sudo reboot", "interrupts"),
        ("kill 31337", "interrupts"),
        ("scontrol update NodeName=a State=DRAIN Reason='x: y'", "machine"),
        ("srun --exclude=gpu-0004 COMMAND", "environment"),
        ("wsl.exe --shutdown", "interrupts"),
        ("dnf list --showduplicates nvidia-driver-cuda-libs", "reads"),
        ("zypper search -s 'nvidia-compute*'", "reads"),
        ("dkms status", "reads"),
        ("sudo dkms autoinstall", "machine"),
        ("qsub -I -l select=1:ngpus=1", "environment"),
        ("bsub -I -gpu num=1 gpucheck", "environment"),
        ("sudo dnf install -y gcc", "machine"),
        ("kubectl describe node | grep nvidia.com/gpu", "reads"),
        ("kubectl cordon node", "machine"),
        ("lxc restart CONTAINER", "interrupts"),
        ("lxc config device add CONTAINER gpu gpu", "environment"),
        ("sudo systemctl restart docker", "interrupts"),
        ("frobnicate --all", None),
        ("nvidia-smi | frobnicate", None),
        ("", None),
    ],
)
def test_the_class_of_a_command(command: str, expected: str | None) -> None:
    assert class_of(command) == expected


@EACH
def test_every_command_for_a_machine_has_a_class(name: str) -> None:
    for finding in reported(name).findings:
        for fix in finding.fixes:
            assert len(fix.classes) == len(fix.commands)
            assert all(fix.classes), (finding.slug, fix)


def test_every_command_of_messages_and_headers_has_a_class() -> None:
    commands = {
        command
        for finding in all_messages().values()
        for message in finding.messages
        for fix in finding.fixes_for(message)
        for there in (False, True)
        for command in fix.plain(on_windows=there).commands
    }
    commands |= {command for rule in all_rules().values() for command in rule.preflight.commands}
    assert len(commands) > 80
    assert {command for command in commands if class_of(command) is None} == set()


@EACH
def test_of_alternatives_the_harmless_one_comes_first(name: str) -> None:
    """But for an old driver of Windows: a PC has one user, and a new driver keeps the PyTorch."""
    if name == "wsl2-windows-driver-too-old":
        assert reported(name).findings[0].fixes[0].reach != "environment"
        return
    for finding in reported(name).findings:
        before = 0
        for fix in finding.fixes:
            reach = CLASSES.index(fix.reach) if fix.reach else 0
            assert not fix.text.startswith("Or ") or not fix.reach or reach >= before, finding
            before = reach


@EACH
def test_what_interrupts_others_says_so(name: str) -> None:
    for finding in reported(name).findings:
        for fix in finding.fixes:
            assert bool(fix.cautions) == (fix.reach == "interrupts"), (finding.slug, fix)


def careful(commands: tuple[str, ...], *sections: Section, is_hardware: bool = False) -> Fix:
    advice: Interruption = supply(Interruption, snapshot(*sections), TABLES)
    return advice.careful(Fix(text="Do it.", commands=commands), is_hardware=is_hardware)


def test_who_is_interrupted_is_named() -> None:
    holders = [
        GpuProcess(pid=pid, process_name="python3", used_bytes=1, kind="compute")
        for pid in (11, 12, 13, 14)
    ]
    busy = nvml_of([NvmlGpu(index=0, processes=holders)])
    found = careful(("sudo reboot",), UBUNTU, NO_CONTAINER, busy)
    named = ", ".join(f"python3 (pid {pid})" for pid in (11, 12, 13))
    who = f"On its GPUs now: {named} and one more process."
    assert found.cautions == (interruption.STOPS_OTHERS, who)


def test_a_node_is_drained_by_its_own_scheduler() -> None:
    slurm = System(os="linux", wsl=0, under_slurm=True)
    assert interruption.DRAIN_SLURM in careful(("sudo reboot",), slurm, NO_CONTAINER).cautions
    for node in (Pci(nvswitches=4), LimitsOfProcess(infiniband_devices=["mlx5_0"])):
        either = careful(("sudo reboot",), UBUNTU, NO_CONTAINER, node).cautions[-1]
        assert "scontrol" in either
        assert "kubectl" in either
    workstation = careful(("sudo reboot",), UBUNTU, NO_CONTAINER, Pci(nvswitches=0))
    assert workstation.cautions == (interruption.STOPS_OTHERS,)


def test_the_traces_of_a_hardware_fault_are_collected_first() -> None:
    found = careful(("sudo reboot",), UBUNTU, NO_CONTAINER, is_hardware=True)
    assert found.commands == ("sudo nvidia-bug-report.sh", "sudo reboot")
    assert interruption.COLLECT_BEFORE_RESTART in found.cautions
    reset = careful(("sudo nvidia-smi --gpu-reset -i 0",), UBUNTU, NO_CONTAINER, is_hardware=True)
    assert reset.cautions[0] == interruption.RESET_STOPS_OTHERS
    assert reset.cautions[-1] == interruption.COLLECT_BEFORE_RESET
    inside = careful(("sudo reboot",), UBUNTU, DOCKER, is_hardware=True)
    assert inside.commands == ("sudo reboot",)
    assert careful(("sudo reboot",), UBUNTU, NO_CONTAINER).commands == ("sudo reboot",)


@pytest.mark.parametrize(
    ("command", "inside"),
    [
        ("sudo apt-get install -y gcc", "apt-get install -y gcc"),
        ("sudo ldconfig", "ldconfig"),
        ("sudo systemctl restart docker", "sudo systemctl restart docker"),
    ],
)
def test_root_in_a_container_needs_no_sudo_which_images_seldom_have(
    command: str, inside: str
) -> None:
    root = msgspec.structs.replace(UBUNTU, user="root")
    found = careful((command,), root, DOCKER)
    assert found.commands == (inside,)
    assert found.classes == (class_of(command),)
    assert careful((command,), root, NO_CONTAINER).commands == (command,)
    assert careful((command,), UBUNTU, DOCKER).commands == (command,)


@each(
    ("command", "plain"),
    [
        ("sudo reboot", "reboot"),
        ("echo 1 | sudo tee /etc/x", "echo 1 | tee /etc/x"),
        ("sudo apt-get update && sudo apt-get upgrade", "apt-get update && apt-get upgrade"),
        ("grep 'no sudo here' /etc/x", "grep 'no sudo here' /etc/x"),
    ],
)
def test_root_needs_no_sudo(command: str, plain: str) -> None:
    root = msgspec.structs.replace(UBUNTU, is_root=True)
    found = careful((command,), root, NO_CONTAINER)
    assert found.commands == (plain,)
    assert found.classes == (class_of(command) or "",)
    assert careful((command,), UBUNTU, NO_CONTAINER).commands == (command,)


def test_a_fix_of_another_node_keeps_what_was_said_there() -> None:
    there = careful(("sudo reboot",), UBUNTU, NO_CONTAINER, is_hardware=True)
    busy = nvml_of([NvmlGpu(index=0, processes=[GpuProcess(pid=1, kind="compute")])])
    here: Interruption = supply(Interruption, snapshot(UBUNTU, NO_CONTAINER, busy), TABLES)
    assert here.careful(there, is_hardware=True) == there


def test_before_a_process_is_killed_its_owner_is_shown() -> None:
    (fix,) = reported("memory-held-by-leftover").findings[0].fixes
    assert fix.commands == ("ps -o user,pid,lstart,args -p 52011", "kill 52011")
    assert fix.cautions == (interruption.OTHERS_END_THEIRS,)


def test_every_format_shows_the_class_and_the_caution() -> None:
    report = reported("library-mismatch")
    fix = report.findings[0].fixes[0]
    assert "Caution  This interrupts everyone" in terminal.render(report)
    assert "Fix 1 (interrupts others): Reboot" in terminal.render(report, verbose=1)
    assert "Caution: This interrupts everyone" in terminal.render(report, verbose=1)
    assert "**Fix 1 (interrupts others).** Reboot" in markdown.render(report)
    assert "**Caution.** This interrupts everyone" in markdown.render(report)
    data = report.as_json()["findings"][0]["fixes"][0]
    assert (list(data["classes"]), list(data["cautions"])) == (["interrupts"], [*fix.cautions])


def test_a_reply_warns_in_both_languages() -> None:
    text = "Failed to initialize NVML: Driver/library version mismatch\n"
    report = triage(text, TABLES)
    assert "**Caution.** This interrupts everyone" in reply(report)
    caution = next(fix for fix in report.standing[0].fixes if fix.cautions).cautions[0]
    with speaking("zh"):
        assert spoken(caution) in reply(report, "zh")
    assert "**注意" in reply(report, "zh")


def test_without_sudo_root_must_run_it() -> None:
    user = msgspec.structs.replace(UBUNTU, is_root=False, has_sudo=False)
    found = careful(("sudo apt-get update", "echo sudo"), user, NO_CONTAINER)
    assert found.commands == ("apt-get update", "echo sudo")
    assert found.cautions == (interruption.AS_ROOT,)
    assert careful(("echo sudo",), user, NO_CONTAINER).cautions == ()
    assert interruption.AS_ROOT in careful(("sudo reboot",), user, NO_CONTAINER).cautions
    for known in (True, None):
        other = msgspec.structs.replace(user, has_sudo=known)
        assert careful(("sudo reboot",), other, NO_CONTAINER).commands == ("sudo reboot",)
