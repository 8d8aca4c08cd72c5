import io
import re
import subprocess
import sys

import msgspec
import pytest
import report_samples as samples
import test_machines
from each import each
from selftest_facts import failed, ran, result

from gpucheck.engine import Report
from gpucheck.engine.report import MARK
from gpucheck.facts.claims import CommandClass, Confidence, Fix, Severity
from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.facts.libraries import CudaLibraries, CudaLibrary, LoadedLibrary, Loading
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter
from gpucheck.findings.form import Finding
from gpucheck.language import speaking, spoken
from gpucheck.output import markdown, terminal
from gpucheck.output.layout import Page
from gpucheck.output.machine_summary import Area, areas
from gpucheck.output.report_blocks import fixes
from gpucheck.output.summary import target
from gpucheck.output.terminal import LINES, rows

SGR = re.compile(r"\x1b\[[0-9;]*m")


def first(report: Report) -> str:
    """Return the verdict with its wrapped lines joined."""
    text = terminal.render(report, width=100, quiet=True)
    return " ".join(text.split("\n")[0].split())


def test_the_verdict_comes_first() -> None:
    assert first(samples.healthy()).startswith(
        "HEALTHY PyTorch 2.9.1+cu128 sees 2 x NVIDIA H100 80GB HBM3 (driver 580.65.06, CUDA"
    )
    assert first(samples.no_gpu()).startswith(
        "HEALTHY No NVIDIA GPU is seen here (one that is switched off is not seen, either); PyTorch"
    )
    assert first(samples.old_driver()).startswith("BROKEN Driver 515.105.01 (CUDA 11.7) is older")
    assert first(samples.unknown()).startswith(
        "UNKNOWN It is unknown whether there is an NVIDIA GPU: /sys/bus/pci/devices:"
    )
    many = " ".join(terminal.render(samples.many(), quiet=True).split())
    assert " - and 2 more errors " in many


@each("name", samples.ALL)
@each("verbose", [0, 1, 2])
def test_lines_fit_80_columns_but_for_commands_and_paths(name: str, verbose: int) -> None:
    report = samples.ALL[name]()
    commands = {
        command for finding in report.findings for fix in finding.fixes for command in fix.commands
    }
    for line in terminal.render(report, verbose=verbose).splitlines():
        words = line.split()
        one_long_word = len(words) == 1 or line.startswith(MARK)
        assert len(line) <= 80 or one_long_word or line.strip() in commands
        assert line.isascii()


@each("name", samples.ALL)
def test_colour_adds_codes_and_nothing_else(name: str) -> None:
    report = samples.ALL[name]()
    plain = terminal.render(report, verbose=2)
    colored = terminal.render(report, verbose=2, color=True)
    assert "\x1b" not in plain
    assert colored != plain
    assert SGR.sub("", colored) == plain


def test_commands_can_be_copied() -> None:
    report = samples.old_driver()
    lines = terminal.render(report, color=True).splitlines()
    for finding in report.causes[:1]:
        for fix in finding.fixes[:1]:
            assert fix.commands
            for command in fix.commands:
                assert f"  {command}" in lines


def test_the_target_and_its_reason_are_always_printed() -> None:
    text = " ".join(terminal.render(samples.healthy()).split())
    assert "3.11.7 at /home/alice/proj/.venv/bin/python (the active virtual environment)" in text
    assert "/usr/bin/python3 (the first on PATH) has torch 2.1.0+cpu as well" in text
    failed = samples.report(
        Interpreter(
            status="signal",
            executable="/opt/py/bin/python",
            chosen_by="--python",
            problems={"version": "killed by SIGILL"},
        )
    )
    text = " ".join(terminal.render(failed).split())
    assert "Python /opt/py/bin/python (--python) did not answer: killed by SIGILL" in text
    assert "Python unknown" in " ".join(terminal.render(samples.unknown()).split())


def test_an_environment_of_gpucheck_that_was_passed_over_is_named() -> None:
    python = Interpreter(
        status="ok", executable="/usr/bin/python3", version="3.12.3",
        chosen_by="the first python3 on PATH", passed_over="/opt/gpucheck/bin/python",
    )  # fmt: skip
    healthy = samples.healthy()
    found = msgspec.structs.replace(healthy, snapshot=healthy.snapshot.with_section(python))
    assert target(found) == (
        "3.12.3 at /usr/bin/python3 (the first python3 on PATH; the active one, "
        "/opt/gpucheck/bin/python, has gpucheck and no torch)"
    )


def test_what_was_not_tested_is_said() -> None:
    for make in samples.ALL.values():
        assert "No self-test was run" in terminal.render(make())


def test_the_cause_with_its_fix_and_the_rest_in_a_line_each() -> None:
    text = terminal.render(samples.many())
    assert text.count("\nVerify   ") == 1
    joined = " ".join(text.split())
    for slug in ("torch-cpu-only", "torch-mixed-install", "shm-too-small", "memlock-too-low"):
        assert f"({slug})" in joined
    assert "(possible)" in joined
    assert "(gpu-memory-held)" not in joined  # another finding explains it


def test_everything_is_said_with_v() -> None:
    text = terminal.render(samples.many(), verbose=1)
    assert "error: torch-mixed-install" in text
    assert "This also explains: gpu-memory-held" in text
    assert "warning: gpu-memory-held" not in text
    assert text.count("  Evidence\n") == 7


@each("name", samples.ALL)
@each("verbose", [0, 1, 2])
def test_the_verdict_is_the_last_line_again(name: str, verbose: int) -> None:
    report = samples.ALL[name]()
    lines = terminal.render(report, verbose=verbose).splitlines()
    assert lines[-1].split()[0] == lines[0].split()[0]
    assert lines[-1].split()[1:] == ", ".join(report.root_causes).split()
    assert lines[-2].startswith(MARK)


@pytest.mark.exhaustive
@each("name", test_machines.NAMES)
def test_a_report_fits_one_screen(name: str) -> None:
    for language in ("en", "zh"):
        with speaking(language):
            text = terminal.render(test_machines.reported(name))
        assert rows(text, 80) <= LINES, language


def test_as_many_fixes_as_fit_are_shown_and_the_others_counted() -> None:
    text = terminal.render(test_machines.reported("cuda-build-no-gpu-vm"))
    assert rows(text, 80) <= LINES
    assert "Fix 2 " in text
    assert "Fix 3 " not in text
    assert "gpucheck -v (1 more fix)" in text


def test_a_recorded_machine_has_commands_only_with_a_fix() -> None:
    there = "Run its commands there."
    assert there in terminal.render(test_machines.reported("exclusive-held"))
    assert there not in terminal.render(test_machines.reported("gke-pod-ok"))


def test_what_a_diagnosis_is_based_on() -> None:
    def page(name: str) -> str:
        return " ".join(terminal.render(test_machines.reported(name)).split())

    assert "based on files: no NVIDIA driver answered." in page("nouveau-no-driver")
    assert "what the driver reports." in page("library-mismatch")  # NVML 18 is an answer
    assert "1 passed, 3 failed. " in page("force-ptx-jit")  # nobody noted how long it took


def test_a_mask_that_hides_nothing_is_not_mentioned() -> None:
    def gpus(name: str) -> str:
        return areas(test_machines.reported(name))[0].words

    assert "CUDA_VISIBLE_DEVICES" not in gpus("gke-pod-ok")
    assert "leaves NVIDIA GeForce RTX 4090 visible" in gpus("mixed-gpus-index-mask")


def test_what_is_newer_than_the_tables_is_not_the_system() -> None:
    marked = [a.name for a in areas(test_machines.reported("newer-than-tables")) if a.slugs]
    assert marked == ["Driver"]


def test_an_unknown_verdict_has_a_next_step() -> None:
    unknown = 0
    for name in test_machines.NAMES:
        report = test_machines.reported(name)
        if report.verdict == "unknown":
            unknown += 1
            lines = terminal.render(report).splitlines()
            assert any(line.startswith("Next ") for line in lines), name
            assert "Next" in markdown.render(report), name
    assert unknown >= 7


def test_quiet_is_the_verdict_and_the_slugs() -> None:
    lines = terminal.render(samples.many(), quiet=True).splitlines()
    assert lines[0].startswith("BROKEN")
    assert lines[2:-1] == [
        "error    driver-too-old",
        "error    torch-cpu-only",
        "error    torch-mixed-install",
        "warning  shm-too-small",
        "warning  pcie-link-degraded",
        "warning  memlock-too-low",
        "info     newer-than-tables",
    ]
    assert lines[-1].startswith(f"{MARK} verdict=broken causes=driver-too-old,")


def test_verbose_lists_checks_probes_and_then_facts() -> None:
    once = terminal.render(samples.old_driver(), verbose=1)
    assert re.search(r"^Checks: [0-9]+ fired, [0-9]+ fine", once, re.MULTILINE)
    assert re.search(r"^  driver +ok, 0\.003 s$", once, re.MULTILINE)
    assert "\nFacts\n" not in once
    twice = terminal.render(samples.old_driver(), verbose=2)
    assert f"  nvml.gpus.0.uuid: {samples.UUIDS[0]} (NVML)" in twice.splitlines()


def test_undecided_checks_are_where_the_report_says() -> None:
    def footer(verbose: int) -> str:
        report = test_machines.reported("application-xids-only")
        return " ".join(terminal.render(report, verbose=verbose).split())

    assert "facts are missing: see gpucheck -v." in footer(0)
    assert "facts are missing: see the checks below." in footer(1)
    assert "see gpucheck -v" not in footer(1)


def test_each_area_has_a_state_in_a_word() -> None:
    def states(report: Report) -> dict[str, str]:
        return {area.name: area.status for area in areas(report)}

    assert set(states(samples.healthy()).values()) == {"ok"}
    assert states(samples.no_gpu()) == {
        "GPUs": "none",
        "Driver": "none",
        "PyTorch": "ok",
        "CUDA libraries": "none",
        "Toolkit": "none",
        "System": "ok",
    }
    assert states(samples.old_driver())["Driver"] == "error"
    assert states(samples.old_driver())["GPUs"] == "ok"
    assert states(samples.unknown())["GPUs"] == "unknown"
    assert states(samples.many())["PyTorch"] == "error"
    assert states(samples.many())["System"] == "warning"


def test_of_two_copies_the_area_shows_the_one_that_torch_loads() -> None:
    def cublas(version: str) -> CudaLibrary:
        path = f"/env/cu{version}/libcublas.so"
        return CudaLibrary(library="cublas", version=version, path=path, found_via="system")

    found = CudaLibraries(libraries=[cublas("13"), cublas("12.8")])
    loading = Loading(libraries=[LoadedLibrary(path="/env/cu12.8/libcublas.so")])
    report = samples.healthy()
    snapshot = report.snapshot.with_section(found).with_section(loading)
    report = msgspec.structs.replace(report, snapshot=snapshot)
    shown = {area.name: area.words for area in areas(report)}
    assert shown["CUDA libraries"] == "cuBLAS 12.8 (system), 1 further file"
    with speaking("zh"):
        assert "系统" in spoken(shown["CUDA libraries"])


@each(
    ("name", "kind", "device", "slug", "area"),
    [
        ("cublas-matmul", "wrong-value", "cuda:0", "wrong-result", "GPUs"),
        ("peer-copy", "wrong-value", "cuda:0,cuda:1", "wrong-result", "GPUs"),
        ("cudnn-convolution", "cudnn-status", "cuda:0", "cudnn-runtime-failure", "CUDA libraries"),
        ("cublas-matmul", "wrong-value", "cpu", "wrong-result", ""),
        ("training-step", "python-exception", "cpu", "selftest-failed", ""),
    ],
)
def test_what_a_selftest_shows_stands_in_the_area_of_what_it_ran_on(
    name: str, kind: str, device: str, slug: str, area: str
) -> None:
    bad = failed(name, kind, device=device, data={"status": "CUDNN_STATUS_INTERNAL_ERROR"})
    report = samples.report(samples.SYSTEM, ran(result("device-placement"), bad))
    assert report.root_causes == (slug,)
    marked = {failing.name: failing.slugs for failing in areas(report) if failing.status == "error"}
    assert marked == ({area: (slug,)} if area else {})


def line(machine: str, name: str) -> Area:
    return next(area for area in areas(test_machines.reported(machine)) if area.name == name)


@each(
    ("machine", "name", "status", "words"),
    [
        # Inside WSL no bus has the GPU and no module is the driver: Windows has both.
        ("wsl2-linux-driver-inside", "GPUs", "unknown", "only through the driver of Windows"),
        ("wsl2-linux-driver-inside", "Driver", "error", "Windows did not answer (NVML"),
        # PyTorch is installed, but a file of the user's is imported in its place.
        ("torch-py-shadow", "PyTorch", "error", "Python imports /home/ana/project/torch.py"),
        ("wsl1", "GPUs", "none", "WSL 1 cannot use a GPU"),
        ("windows-cpu-no-nvidia", "GPUs", "none", "display adapters: Intel(R) Iris(R) Xe"),
        ("windows-cpu-no-nvidia", "Driver", "none", "no NVIDIA driver is in use"),
        # A mask hides GPUs, and the driver has nothing to do with that.
        ("cvd-bad-uuid", "GPUs", "error", "CUDA_VISIBLE_DEVICES=GPU-deadbeef leaves 0"),
        ("cvd-bad-uuid", "Driver", "ok", "580.95.05"),
        ("cvd-empty", "GPUs", "error", 'CUDA_VISIBLE_DEVICES="" leaves 0 visible'),
        ("mig-wrong-uuid", "GPUs", "error", "CUDA_VISIBLE_DEVICES leaves 0 visible"),
        ("mig-wrong-uuid", "Driver", "note", "570.172.08"),
        ("docker-no-gpu", "System", "error", "in a container (docker)"),
        # A cuda-compat library goes further than the driver, where the GPU supports it.
        ("forward-compat-r535-cu130", "Driver", "note", "up to 13.0 with cuda-compat"),
        ("forward-compat-on-geforce", "Driver", "error", "535.183.01, open kernel modules"),
        # torch loads the cuBLAS that is named after the major of its CUDA.
        ("cublas-cu11-beside-cu12-ok", "CUDA libraries", "ok", "cuBLAS 12 (wheel)"),
        ("nouveau-no-driver", "Driver", "error", "no NVIDIA kernel module is loaded"),
        ("nouveau-no-driver", "GPUs", "ok", "GeForce"),
        # Once the GPU has its driver, a CPU build is the next fault.
        ("cpu-build-gpu-without-driver", "PyTorch", "note", "CPU build"),
        ("cpu-build-no-gpu", "PyTorch", "ok", "CPU build"),
        ("cuda-build-no-gpu-vm", "GPUs", "error", "no NVIDIA GPU on the PCI bus"),
        ("windows-ok", "System", "ok", "Windows 11, version 10.0.26100, x86_64"),
        ("macos-mps", "System", "ok", "macOS, Darwin 24.6.0, arm64"),
        ("macos-mps", "Driver", "none", "there is no NVIDIA driver for this macOS"),
    ],
)
def test_a_line_of_the_machine(machine: str, name: str, status: str, words: str) -> None:
    found = line(machine, name)
    assert found.status == status
    assert words in found.words


def test_windows_11_is_told_by_its_build_where_an_older_python_says_10() -> None:
    windows = System(os="windows", kernel="10", distribution_version="10.0.22631")
    assert areas(samples.report(windows))[-1].words == "Windows 11, version 10.0.22631"
    windows = System(os="windows", kernel="10", distribution_version="10.0.19045")
    assert areas(samples.report(windows))[-1].words == "Windows 10, version 10.0.19045"


@each("width", [10, 40, 60, 80, 120, 500])
@each("name", samples.ALL)
def test_the_width_of_the_terminal_is_used_from_40_to_120_columns(name: str, width: int) -> None:
    report = samples.ALL[name]()
    commands = {
        command for finding in report.findings for fix in finding.fixes for command in fix.commands
    }
    lines = terminal.render(report, verbose=2, width=width).splitlines()
    room = min(max(width, 40), 120)
    for text in lines:
        one_long_word = len(text.split()) == 1 or text.startswith(MARK)
        if text.strip().startswith("gpucheck --python "):
            continue  # of a note: it may be copied
        too_long = [word for word in text.split() if len(word) > room // 2]
        assert len(text) <= room or one_long_word or text.strip() in commands or too_long
    assert max(len(text) for text in lines) > room * 2 // 3


def test_a_narrow_page_has_words_below_their_cells() -> None:
    text = terminal.render(samples.healthy(), width=40, verbose=1)
    assert re.search(r"^  Driver +ok\n    580\.65\.06", text, re.MULTILINE)
    wide = terminal.render(samples.healthy(), width=80, verbose=1)
    assert "  Driver         ok      580.65.06" in wide


def test_mig_and_a_lost_gpu_are_seen_in_their_area() -> None:
    gpus = [
        NvmlGpu(device_name="NVIDIA A100", mig_enabled=True, mig_devices=[]),
        NvmlGpu(lost=True),
    ]
    words = areas(samples.report(Nvml(gpus=gpus)))[0].words
    assert words == "NVIDIA A100 and NVIDIA GPU (lost); MIG is on, 0 instances"


def test_hostile_values_reach_the_screen_harmless() -> None:
    evil = "\x1b[2J\x1b]0;x\x07\u202e\r\nHEALTHY  all is well"
    finding = Finding(
        slug="torch-missing",
        severity=Severity.ERROR,
        confidence=Confidence.CERTAIN,
        headline=evil,
        fixes=(Fix(text=evil, commands=(f"rm {evil}",), verify=evil),),
    )
    report = samples.report(
        Interpreter(status="ok", executable=evil, chosen_by=evil, version=evil),
        Nvml(driver_release=evil, gpus=[NvmlGpu(device_name=evil)], problems={"cuda": evil}),
    )
    report = msgspec.structs.replace(
        report, verdict="broken", root_causes=("torch-missing",), findings=(finding,)
    )
    text = terminal.render(report, verbose=2)
    assert not [char for char in text if not (char.isprintable() or char == "\n")]
    assert not [line for line in text.splitlines() if line.startswith("HEALTHY")]


def test_any_encoding_can_be_written_to() -> None:
    report = samples.report(
        Interpreter(status="ok", executable="/home/jos\u00e9/\u4e2d/python", version="3.12.1")
    )
    for encoding, expected in (
        ("ascii", "/home/jos\\xe9/\\u4e2d/python"),
        ("latin-1", "/home/jos\u00e9/\\u4e2d/python"),
        ("utf-8", "/home/jos\u00e9/\u4e2d/python"),
        ("no-such-encoding", "/home/jos\\xe9/\\u4e2d/python"),
    ):
        out = io.StringIO()
        written = type("Out", (), {"encoding": encoding, "write": staticmethod(out.write)})
        terminal.show(report, verbose=0, quiet=False, color=False, width=None, out=written())
        assert expected in out.getvalue()


@pytest.mark.process
def test_rich_is_not_loaded_for_the_default_output() -> None:
    script = "import sys, gpucheck.output.terminal; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@each(
    ("commands", "classes"),
    [
        (("ps -o user,pid -p 7", "kill 7"), ("reads", "interrupts")),
        (("sudo apt-get install -y nvidia-open", "sudo reboot"), ("interrupts", "interrupts")),
    ],
)
def test_what_must_not_be_pasted_together_is_in_two_blocks(
    commands: tuple[str, str], classes: tuple[CommandClass, ...]
) -> None:
    page = Page(80)
    page.write(fixes([Fix(text="Do it.", commands=commands, classes=classes)]))
    lines = [line.strip() for line in page.text().splitlines()]
    first, second = map(lines.index, commands)
    assert lines[first + 1 : second] == ["Then, when it disturbs nobody:"]


def test_the_command_that_verifies_a_fix_is_not_cut_off() -> None:
    verify = f"srun --exclude={','.join(f'node{number:04}' for number in range(100))} gpucheck"
    page = Page(80)
    page.write(fixes([Fix(text="Do it.", verify=verify)]))
    assert verify in page.text()


def test_what_self_tests_rule_out_is_a_note() -> None:
    page = terminal.render(test_machines.reported("selftest-outweighs-tables"))
    said = "Note Ruled out by self-tests that passed (device-placement and cublas-matmul): Driver"
    assert said in " ".join(page.split())
    assert "Ruled out" not in terminal.render(test_machines.reported("r470-cu121"))
