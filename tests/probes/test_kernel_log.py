"""The kernel log as drivers and kernels write it."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from each import each
from support import machine

from gpucheck.facts import Answer
from gpucheck.facts.driver import KernelLog
from gpucheck.log_patterns import kernel_log as messages
from gpucheck.machine import LiveHost, Ran
from gpucheck.probes.kernel_log import collect

UUID = "GPU-8f6d1f0e-3b1c-4c0a-9d5e-0a1b2c3d4e5f"
JOURNAL = "journalctl -k -b -q -o short-monotonic --no-pager -n 5000"
SIGN = {"/sys/module/nvidia/version": "560.35.03", "/proc/uptime": "900.0 1.0"}
REFUSED = {"/dev/kmsg": "EPERM: Operation not permitted"}
DMESG = (
    "[    0.000000] Linux version 6.8.0-45-generic\n"
    "[  812.345678] NVRM: Xid (PCI:0000:01:00): 79, pid=5, GPU has fallen off the bus.\n"
    "[  812.345678][  T123] NVRM: Xid (PCI:0000:02:00): 94, pid=5, Contained error\n"
)


def log_of(tmp_path: Path, *texts: str) -> KernelLog:
    """Read a kmsg buffer of these messages, one each second, up for 1000 seconds."""
    kmsg = "5,1,0,-;Linux version 6.8.0\n" + "".join(
        f"3,{number},{number * 1_000_000},-;{text}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:01:00.0\n"
        for number, text in enumerate(texts, start=2)
    )
    files = {"/dev/kmsg": kmsg, "/proc/uptime": "1000.00 3600.00\n"}
    return collect(machine(tmp_path, files=files))


def test_gpu_that_fell_off_the_bus(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        f"NVRM: GPU at PCI:0000:3b:00: {UUID}",
        "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, "
        "GPU has fallen off the bus.",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
    )

    assert log.xids is not None
    (event,) = log.xids
    assert (event.xid, event.pci_address) == (79, "0000:3b:00.0")
    assert event.message is not None
    assert event.message.endswith("GPU has fallen off the bus.")
    assert event.seconds_ago == 997.0
    assert log.fallen_off_bus == ["0000:3b:00.0"]
    assert log.nvrm == [
        "NVRM: GPU at PCI:0000:3b:00: GPU-...",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
    ]
    assert log.source("xids") == "/dev/kmsg"


@each(
    ("text", "number", "address"),
    [
        ("NVRM: Xid (PCI:0000:03:00): 31, pid=1234, name=python, Ch 00000010", 31, "0000:03:00.0"),
        ("NVRM: Xid (0000:03:00): 8, Channel 00000001", 8, "0000:03:00.0"),
        ("NVRM: Xid (PCI:0000:d8:00 GPU-I:05): 13, pid=77, name=python", 13, "0000:d8:00.0"),
        ("NVRM: Xid (PCI:8C3D:00:00): 63, Row Remapper: New row", 63, "8c3d:00:00.0"),
        ("NVRM: Xid (PCI:0009:01:00): 145, RLW_REMAP Nonfatal", 145, "0009:01:00.0"),
        ("NVRM: Xid (0x1ca7000): 43, pid=9", 43, ""),
        ("[  12.3] NVRM: Xid (PCI:0000:01:00): 62, 0cb5(2d50) 8503e428", 62, "0000:01:00.0"),
    ],
)
def test_forms_of_an_xid(text: str, number: int, address: str) -> None:
    xid = messages.parse_xid(text)

    assert xid is not None
    assert (xid.number, xid.address) == (number, address)


@each(
    "text",
    [
        "NVRM: Xid",
        "NVRM: Xid (PCI:0000:03:00): many",
        "NVRM: Xid (" + "(" * 5000,
        "app: saw an Xid 79 in a forum",
    ],
)
def test_what_is_no_xid(text: str) -> None:
    assert messages.parse_xid(text) is None


def test_an_address_that_is_not_there_is_unknown(tmp_path: Path) -> None:
    log = log_of(tmp_path, "NVRM: Xid (0x1ca7000): 43, pid=9")

    assert log.xids is not None
    assert log.xids[0].pci_address is None
    assert log.xids[0].problem("pci_address") == "the message names no PCI address"


def test_gpu_missing_while_the_driver_loads(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        "NVRM: The NVIDIA GPU 0000:0a:00.0",
        "NVRM: (PCI ID: 10de:1b06) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
    )

    assert log.fallen_off_bus == ["0000:0a:00.0"]
    assert log.xids == []


def test_other_lines_of_the_driver(tmp_path: Path) -> None:
    mismatch = (
        "NVRM: API mismatch: the client has the version 535.54.03, but\n"
        "NVRM: this kernel module has the version 535.86.05."
    )
    log = log_of(
        tmp_path,
        "usb 1-1: new high-speed USB device",
        *mismatch.split("\n"),
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0x56:1482)",
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32",
    )

    assert log.nvrm is not None
    assert len(log.nvrm) == 3
    assert log.nvrm[0].startswith("NVRM: API mismatch")
    assert [event.sxid for event in log.sxids or ()] == [12028]


def test_modules_that_the_kernel_refused(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        "Loading of module with unavailable key is rejected",
        "Loading of unsigned module is rejected",
        "Loading of module with unavailable key is rejected",
        "vboxdrv: loading out-of-tree module taints kernel.",
        "a request of the firewall is rejected",
    )

    assert log.rejected_modules == [
        "Loading of module with unavailable key is rejected",
        "Loading of unsigned module is rejected",
    ]


SWITCH = "nvidia-nvswitch0: SXid (PCI:0000:84:00.0): "


@each(
    ("text", "number", "address", "link", "fatal"),
    [
        (f"{SWITCH}24007, Fatal, Link 44 sourcetrack timeout error (First)", 24007,
         "0000:84:00.0", 44, True),
        (f"{SWITCH}11012, Correctable, Link 32 ingress header ECC", 11012, "0000:84:00.0", 32,
         False),
        (f"{SWITCH}10003, Fatal, unhandled interrupt in _service(812)", 10003, "0000:84:00.0",
         None, True),
        (f"{SWITCH}26006, SOE HALTED", 26006, "0000:84:00.0", None, None),
        (("[Jul 09 2024 18:14:07] [ERROR] [tid 12727] detected NVSwitch non-fatal error 12028 on "
         "fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61"), 12028,
         "0000:86:00.0", 61, False),
        (("nv-fabricmanager[5183]: detected NVSwitch fatal error 20034 on NodeId 0 on NVSwitch pci "
         "bus id 00000000:08:00.0 physical id 3 port 60"), 20034, "0000:08:00.0", 60, True),
    ],
)  # fmt: skip
def test_forms_of_an_sxid(
    text: str, *, number: int, address: str, link: int | None, fatal: bool | None
) -> None:
    sxid = messages.parse_sxid(text)

    assert sxid is not None
    assert (sxid.number, sxid.address, sxid.link, sxid.fatal) == (number, address, link, fatal)


@each(
    "text",
    [
        f"{SWITCH}24007, Severity 1 Engine instance 44 Sub-engine instance 00",
        f"{SWITCH}24007, Data {{0x00000044, 0x00000001}}",
        "nvidia-nvswitch0: open (major=510)",
        "detected NVSwitch fatal error many on fid 0",
        "SXid (" + "(" * 5000,
    ],
)
def test_what_is_no_sxid(text: str) -> None:
    assert messages.parse_sxid(text) is None


def test_an_sxid_on_this_machine(tmp_path: Path) -> None:
    log = log_of(tmp_path, f"{SWITCH}10003, Fatal, unhandled interrupt in _service(812)")

    assert log.sxids is not None
    (event,) = log.sxids
    assert (event.sxid, event.pci_address, event.fatal) == (10003, "0000:84:00.0", True)
    assert event.seconds_ago == 998.0
    assert event.problem("link") == "the message does not say"


def test_floods_are_cut_and_keep_the_rare_event(tmp_path: Path) -> None:
    flood = [f"NVRM: Xid (PCI:0000:03:00): 31, pid={number}" for number in range(300)]
    log = log_of(
        tmp_path,
        "NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus.",
        *flood,
        *[f"NVRM: line {number}" for number in range(100)],
    )

    assert log.xids is not None
    assert [event.xid for event in log.xids] == [79] + [31] * 20
    assert log.xids[-1].message == "pid=299"
    assert log.nvrm == [f"NVRM: line {number}" for number in range(50, 100)]


@each(
    ("text", "pid", "name", "scope"),
    [
        (
            "Out of memory: Killed process 4242 (python) total-vm:81788928kB, anon-rss:61000000kB",
            4242,
            "python",
            "host",
        ),
        (
            "Memory cgroup out of memory: Killed process 77 (pt_data_worker) total-vm:1kB, UID:0",
            77,
            "pt_data_worker",
            "cgroup",
        ),
        ("Out of memory: Kill process 9 (java) score 905 or sacrifice child", 9, "java", "host"),
        (
            "Out of memory (oom_kill_allocating_task): Killed process 5 (a (b) c) total-vm:1kB",
            5,
            "a (b) c",
            "host",
        ),
    ],
)
def test_processes_killed_for_memory(
    tmp_path: Path, text: str, pid: int, name: str, scope: str
) -> None:
    log = log_of(tmp_path, text, text)

    assert log.oom_kills is not None
    (kill,) = log.oom_kills
    assert (kill.pid, kill.process_name, kill.scope) == (pid, name, scope)


OOM = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=a,oom_memcg={group},"  # noqa: ISC004
    "task_memcg={group}/inner,task=python3,pid=7,uid=1000",
    "Memory cgroup out of memory: Killed process 7 (python3) total-vm:1kB, anon-rss:1kB",
)


def own_group(
    folder: Path, group: str, own: str, counters: dict[str, str] | None = None
) -> bool | None:
    kmsg = "".join(f"3,{at},9000000,-;{text.format(group=group)}\n" for at, text in enumerate(OOM))
    files = {"/dev/kmsg": kmsg, "/proc/uptime": "10.0 1.0", "/proc/self/cgroup": own}
    log = collect(machine(folder, files={**files, **(counters or {})}))
    assert log.oom_kills is not None
    (kill,) = log.oom_kills
    assert (kill.scope, kill.seconds_ago) == ("cgroup", 1.0)
    return kill.in_own_group


@pytest.mark.parametrize(
    ("group", "own", "expected"),
    [
        ("/slurm/job_1", "0::/slurm/job_1/step_0/user\n", True),
        ("/slurm/job_1", "0::/slurm/job_1\n", True),
        ("/slurm/job_1", "0::/slurm/job_12/step_0\n", False),
        ("/docker/a", "0::/user.slice/session-3.scope\n", False),
        ("/docker/a", "12:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n0::/\n", True),
        ("/docker/a", "4:memory:/docker/b\n1:name=systemd:/docker/a\n0::/\n", False),
        ("/docker/a", "0::/\n", None),
        ("/docker/a", "0::/../b\n", None),
        ("/docker/a", "nonsense", None),
    ],
)
def test_whose_limit_was_reached(
    tmp_path: Path, group: str, own: str, *, expected: bool | None
) -> None:
    assert own_group(tmp_path, group, own) is expected


@each(("kills", "expected"), [("0", False), ("2", True)])
@each("path", ["memory.events", "memory/memory.oom_control"])
def test_in_a_container_the_count_of_the_container_tells(
    tmp_path: Path, path: str, kills: str, *, expected: bool
) -> None:
    counters = {f"/sys/fs/cgroup/{path}": f"oom 5\noom_kill {kills}\noom_group_kill 9\n"}
    assert own_group(tmp_path, "/docker/a", "0::/\n", counters) is expected
    assert own_group(tmp_path / "named", "/docker/a", "0::/docker/b\n", counters) is False


def test_a_message_from_after_the_uptime_has_no_age(tmp_path: Path) -> None:
    """A container of LXC has an uptime of its own; the kernel's log is that of the host."""
    killed = "Out of memory: Killed process 5 (python3) total-vm:1kB"
    for uptime, ago in (("60.0 1.0", None), ("8999.9 1.0", 0.0), ("86400.0 1.0", 77400.0)):
        kmsg = f"3,7,9000000000,-;{killed}\n3,8,9000000000,-;{DMESG.splitlines()[1][15:]}\n"
        files = {"/dev/kmsg": kmsg, "/proc/uptime": uptime}
        log = collect(machine(tmp_path / uptime, files=files))
        assert log.oom_kills is not None
        assert log.xids is not None
        assert [oom_kill.seconds_ago for oom_kill in log.oom_kills] == [ago]
        assert [event.seconds_ago for event in log.xids] == [ago]


def test_words_about_memory_that_kill_nobody(tmp_path: Path) -> None:
    log = log_of(tmp_path, "Out of memory and no killable processes...", "torch: Out of memory")

    assert log.oom_kills == []


def test_unreadable_log_is_unknown(tmp_path: Path) -> None:
    host = {"problems": {"/dev/kmsg": "EPERM: Operation not permitted"}}

    log = collect(machine(tmp_path, host=host))

    assert (log.xids, log.fallen_off_bus, log.nvrm, log.oom_kills) == (None, None, None, None)
    assert log.problem("xids") == "/dev/kmsg: EPERM: Operation not permitted"


def test_missing_and_empty_buffers_are_unknown(tmp_path: Path) -> None:
    assert collect(machine(tmp_path / "a")).xids is None
    empty = collect(machine(tmp_path / "b", files={"/dev/kmsg": ""}))
    assert empty.xids is None
    assert empty.problem("xids") == "/dev/kmsg: it is empty"


def test_the_journal_stands_in_on_a_machine_with_a_driver(tmp_path: Path) -> None:
    out = (
        "[    0.000000] trainer7 kernel: Linux version 6.8.0-45-generic\n"
        "[  812.345678] trainer7 kernel: NVRM: Xid (PCI:0000:01:00): 94, pid=5, Contained error\n"
    )
    host = machine(
        tmp_path,
        files={"/sys/module/nvidia/version": "560.35.03", "/proc/uptime": "900.0 1.0"},
        host={
            "problems": {"/dev/kmsg": "EPERM: Operation not permitted"},
            "which": {"journalctl": "/usr/bin/journalctl"},
        },
        commands={JOURNAL: {"out": out}},
    )

    log = collect(host)

    assert log.xids is not None
    assert [(event.xid, event.seconds_ago) for event in log.xids] == [(94, 87.7)]
    assert "trainer7" not in str(log)


def test_an_empty_journal_is_no_answer(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        files={"/sys/module/nvidia/version": "560.35.03"},
        host={
            "problems": {"/dev/kmsg": "EPERM: Operation not permitted"},
            "which": {"journalctl": "/usr/bin/journalctl"},
        },
        commands={JOURNAL: {"out": "-- No entries --\n"}},
    )

    log = collect(host)

    assert log.xids is None
    assert "EPERM" in log.problem("xids")


def test_garbage_is_no_record() -> None:
    assert messages.split_kmsg("x;y\n6,1;z\n6,1,abc,-;w\n,,,;\n\x00\n 6,1,2,-;v") == []
    assert messages.split_dmesg("1.0 no\n[x] y\n[ 1.0]z\n" + "[" * 4000) == []
    assert messages.split_journal("[ 1.0] no\n[x] h kernel: y\n" + "[" * 4000) == []


def test_not_on_windows(tmp_path: Path) -> None:
    log = collect(machine(tmp_path, host={"identity": {"os": "windows"}}))

    assert "Linux only" in log.problem("xids")


def scripted_reads(monkeypatch: pytest.MonkeyPatch, steps: list[bytes | int]) -> None:
    """Answer reads as /dev/kmsg does: a message, or the number of an error."""

    def read(_handle: int, _size: int) -> bytes:
        step = steps.pop(0)
        if isinstance(step, int):
            raise OSError(step, os.strerror(step))
        return step

    monkeypatch.setattr("gpucheck.machine.live.os.read", read)


def test_reading_goes_on_over_lost_messages_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted_reads(monkeypatch, [b"6,1,0,-;a\n", errno.EPIPE, b"6,9,5,-;b\n", errno.EAGAIN])

    assert LiveHost().read("/dev/null").value == "6,1,0,-;a\n6,9,5,-;b\n"


def test_a_message_that_does_not_fit_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted_reads(monkeypatch, [b"6,1,0,-;a\n", errno.EINVAL])

    assert LiveHost().read("/dev/null").value == "6,1,0,-;a\n"


def test_a_read_that_fails_at_once_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted_reads(monkeypatch, [errno.EINVAL])
    assert LiveHost().read("/dev/null").problem.startswith("EINVAL")

    scripted_reads(monkeypatch, [b"half", errno.EIO])
    assert LiveHost().read("/dev/null").problem.startswith("EIO")


def test_endless_losses_end(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted_reads(monkeypatch, [errno.EPIPE] * 1000)

    assert LiveHost().read("/dev/null").value == ""


def test_dmesg_stands_in_where_the_device_cannot_be_opened(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        files=SIGN,
        host={"problems": REFUSED, "which": {"dmesg": "/usr/bin/dmesg"}},
        commands={"dmesg": {"out": DMESG}},
    )

    log = collect(host)

    assert log.xids is not None
    assert [(event.xid, event.pci_address) for event in log.xids] == [
        (79, "0000:01:00.0"),
        (94, "0000:02:00.0"),
    ]
    assert log.source("xids") != "/dev/kmsg"


def test_dmesg_that_may_not_ask_leaves_the_reason(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        files=SIGN,
        host={"problems": REFUSED, "which": {"dmesg": "/usr/bin/dmesg"}},
        commands={"dmesg": {"status": 1, "err": "dmesg: klogctl: Operation not permitted"}},
    )

    assert collect(host).problem("xids") == "/dev/kmsg: EPERM: Operation not permitted"


@pytest.mark.parametrize("is_mounted", [True, False])
def test_dmesg_below_a_sysroot_only_if_it_has_this_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_mounted: bool
) -> None:
    for path, text in SIGN.items():
        if is_mounted or not path.startswith("/proc"):
            file = tmp_path / path[1:]
            file.parent.mkdir(parents=True)
            file.write_text(text)
    host = LiveHost(str(tmp_path))
    asked: list[Sequence[str]] = []

    def run(argv: Sequence[str], **_: object) -> Answer[Ran]:
        asked.append(argv)
        return Answer(Ran(status=0, out=DMESG), "dmesg")

    monkeypatch.setattr(host, "which", lambda name: Answer(f"/usr/bin/{name}", "PATH"))
    monkeypatch.setattr(host, "run", run)

    log = collect(host)

    assert asked == ([("dmesg",)] if is_mounted else [])  # never the journal of the container
    assert (log.fallen_off_bus == ["0000:01:00.0"]) is is_mounted


def test_a_time_that_is_no_time_is_no_record() -> None:
    large, odd = "9" * 400, "²"
    assert messages.split_kmsg(f"6,1,{large},-;x\n6,1,{odd},-;y\n6,1,9000000,-;z") == [
        messages.KernelRecord(9.0, "z")
    ]


@pytest.mark.parametrize("uptime", ["inf 1", "nan 1"])
def test_a_time_since_the_boot_that_is_no_time_is_unknown(tmp_path: Path, uptime: str) -> None:
    line = "6,1,1000000,-;NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n"
    host = machine(tmp_path, files={"/dev/kmsg": line, "/proc/uptime": uptime})

    xids = collect(host).xids

    assert xids is not None
    assert xids[0].seconds_ago is None
