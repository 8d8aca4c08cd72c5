"""The Fabric Manager's own log: SXids of this boot that the kernel's log has lost, or hides."""

from pathlib import Path

from each import each
from support import machine

from gpucheck.facts.driver import KernelLog
from gpucheck.log_patterns.kernel_log import split_manager_log
from gpucheck.probes.kernel_log import collect

LOG = "/var/log/fabricmanager.log"
BOOT = 1_772_445_600  # 2 March 2026, 10:00:00 UTC
UPTIME = 200_000  # seconds: until 4 March, 17:33:20 UTC
LINE = (
    "[Mar {time}] [ERROR] [tid 2104] detected NVSwitch {kind} error {sxid} on fid 0 on NVSwitch "
    "pci bus id 00000000:84:00.0 physical id 1 port {port}\n"
)


def line(time: str = "04 2026 17:00:00", kind: str = "fatal", sxid: int = 23001) -> str:
    return LINE.format(time=time, kind=kind, sxid=sxid, port=33)


def log_of(
    folder: Path, text: str, *, kmsg: str = "", zone: str = "+0000", tz: str = "", boot: int = BOOT
) -> KernelLog:
    files = {
        LOG: text,
        "/proc/uptime": f"{UPTIME}.0 1.0\n",
        "/proc/stat": f"cpu 1 2\nbtime {boot}\n",
    }
    refused = {} if kmsg else {"/dev/kmsg": "EPERM: Operation not permitted"}
    return collect(
        machine(
            folder,
            files={**files, **({"/dev/kmsg": kmsg} if kmsg else {})},
            host={"problems": refused},
            env={"TZ": tz} if tz else {},
            commands={"date +%z": {"status": 0, "out": f"{zone}\n"}} if zone else {},
        )
    )


def ages(log: KernelLog) -> list[float | None] | None:
    return None if log.sxids is None else [event.seconds_ago for event in log.sxids]


def test_what_the_log_says_if_the_kernels_may_not_be_read(tmp_path: Path) -> None:
    log = log_of(tmp_path, f"Fabric Manager\n{line()}")

    assert log.sxids is not None
    (event,) = log.sxids
    assert (event.sxid, event.fatal, event.link) == (23001, True, 33)
    assert (event.pci_address, event.seconds_ago) == ("0000:84:00.0", 2000.0)
    assert event.source("sxid") == log.source("sxids") == LOG
    assert (log.xids, log.oom_kills) == (None, None)
    assert log.problem("xids") == "/dev/kmsg: EPERM: Operation not permitted"


@each(
    ("text", "zone", "expected"),
    [
        (line("02 2026 09:59:59"), "+0000", None),
        (line("02 2026 10:00:00"), "+0000", [UPTIME]),
        # In this zone the clock may show its own time or UTC: both have to be after the boot.
        (line("02 2026 11:00:00"), "+0530", None),
        (line("02 2026 15:30:00"), "+0530", [None]),
        (line("02 2026 10:00:00"), "-0800", [None]),
        (line("02 2026 23:59:59"), "", None),
        (line("03 2026 00:00:00"), "", [None]),
        (line("03 2026 00:00:00"), "CET", [None]),
        (line("02 2026 23:59:59"), "+1", None),
    ],
)
def test_only_lines_that_are_surely_of_this_boot(
    tmp_path: Path, text: str, zone: str, expected: list[float | None] | None
) -> None:
    log = log_of(tmp_path, text, zone=zone)
    assert ages(log) == expected
    for event in log.sxids or ():
        known = event.seconds_ago is not None
        assert (
            known or event.problem("seconds_ago") == f"{LOG}: its lines do not name the time zone"
        )


def test_the_zone_of_a_user_is_not_that_of_the_machine(tmp_path: Path) -> None:
    text = line("02 2026 10:00:00") + line()
    assert ages(log_of(tmp_path, text, tz="Asia/Tokyo")) == [None]


@each("sxid", [23001, 22013])
def test_what_is_in_both_counts_once(tmp_path: Path, sxid: int) -> None:
    kmsg = (
        "3,1,1000,-;Linux version 6.8.0\n3,2,150000000000,-;nvidia-nvswitch0: SXid "
        f"(PCI:0000:84:00.0): {sxid}, Fatal, Link 33 what the driver says\n"
    )
    log = log_of(tmp_path, line(sxid=24007) + line(sxid=sxid) * 3, kmsg=kmsg)

    assert log.sxids is not None
    assert [(event.sxid, event.source("sxid")) for event in log.sxids] == [
        (24007, LOG),
        (sxid, "/dev/kmsg"),
    ]
    assert ages(log) == [2000.0, 50000.0]


def test_a_flood_is_cut(tmp_path: Path) -> None:
    assert len(log_of(tmp_path, line(sxid=22013) * 300).sxids or ()) == 20


@each(
    "text",
    [
        "",
        "[Mar 04 2026 17:00:00] [INFO] [tid 2104] Sending inband response message\n",
        line().partition("] ")[2],  # without a time
        line("44 2026 17:00:00"),
        line("04 2026 25:00:00"),
        line("04 0000 17:00:00"),
        "[Foo 04 2026 17:00:00] detected NVSwitch fatal error 23001 on fid 0 port 1\n",
        "[" * 5000,
    ],
)
def test_a_log_that_says_nothing(tmp_path: Path, text: str) -> None:
    assert log_of(tmp_path, text).sxids is None
    assert log_of(tmp_path / "read", text, kmsg="3,1,1000,-;Linux version 6.8.0\n").sxids == []


def test_without_the_time_of_the_boot_no_line_counts(tmp_path: Path) -> None:
    files = {LOG: line(), "/proc/uptime": "9.0 1.0"}
    assert collect(machine(tmp_path, files=files)).sxids is None


def test_a_log_that_may_not_be_read_changes_nothing(tmp_path: Path) -> None:
    files = {"/dev/kmsg": "3,1,1000,-;Linux version 6.8.0\n", "/proc/uptime": "9.0 1.0"}
    refused = {LOG: "EACCES: Permission denied"}
    assert collect(machine(tmp_path, files=files, host={"problems": refused})).sxids == []


def test_the_forms_of_its_times() -> None:
    for text in ("[Mar 02 2026 10:00:00] x", "[Mar 2 2026 10:00:00] x"):
        assert [record.seconds for record in split_manager_log(text)] == [BOOT]
