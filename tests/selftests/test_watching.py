"""What NVML says under load."""

import time
from typing import Any

import msgspec
import pytest
from rule_facts import A100, nvml
from rules_support import ask
from selftest_facts import ran, result

from gpucheck.facts import Answer
from gpucheck.facts.driver import KernelLog, NvmlGpu
from gpucheck.findings.form import Hit
from gpucheck.machine import LiveHost
from gpucheck.selftests import observed
from gpucheck.selftests.observed import Watch, summary


def look(*changes: dict[str, object]) -> list[NvmlGpu]:
    gpus = nvml(*[A100] * len(changes)).gpus or []
    return [
        msgspec.structs.replace(gpu, **change) for gpu, change in zip(gpus, changes, strict=True)
    ]


def test_the_extremes_of_all_looks_are_kept() -> None:
    cool = {"temperature_c": 40, "sm_clock_mhz": 1980, "throttle": ["sw-power-cap"]}
    hot = {"temperature_c": 91, "sm_clock_mhz": 600, "throttle": ["hw-thermal-slowdown"]}
    first, second = summary([look(cool, cool), look(hot, cool), look(cool)])
    assert (first.temperature_max_c, first.sm_clock_min_mhz, first.looks) == (91, 600, 3)
    assert first.held_down == {"hw-thermal-slowdown": 1 / 3}
    assert (second.temperature_max_c, second.looks) == (40, 2)
    assert second.power_max_w is None


def test_the_course_of_temperature_and_memory_is_kept_in_few_moments() -> None:
    looks = [look({"temperature_c": 40 + at % 50, "memory_used_bytes": at}) for at in range(500)]
    (gpu,) = summary(looks, [2.0 * at for at in range(500)])
    assert 60 <= len(gpu.course) <= 120
    assert max(moment.temperature_c or 0 for moment in gpu.course) == 89
    seconds = [moment.seconds for moment in gpu.course]
    assert seconds == sorted(seconds)
    (short,) = summary(looks[:3], [0.0, 2.0, 4.1])
    assert [(moment.seconds, moment.memory_used_bytes) for moment in short.course] == [
        (0.0, 0), (2.0, 1), (4.1, 2),
    ]  # fmt: skip
    assert summary(looks)[0].course == []


def test_errors_that_come_under_load_are_seen() -> None:
    (gpu,) = summary([look({"ecc_uncorrected": 0}), look({"ecc_uncorrected": 2})])
    assert gpu.ecc_uncorrected_added == 2
    sound = msgspec.structs.replace(ran(result("sustained")), under_load=[])
    failing = msgspec.structs.replace(sound, under_load=[gpu])
    quiet = KernelLog(xids=[])
    assert isinstance(ask("gpu-hardware-fault", nvml(A100), quiet, failing), Hit)
    assert not isinstance(ask("gpu-hardware-fault", nvml(A100), quiet, sound), Hit)


@pytest.mark.process
@pytest.mark.parametrize("damaged", [b"", b"\xc1", b"\x91" * 5000, b"\x92\x01\x02"])
def test_a_damaged_look_is_left_out(monkeypatch: pytest.MonkeyPatch, damaged: bytes) -> None:
    """A driver library in the child may have overwritten its memory."""
    monkeypatch.setattr(Watch, "_work", lambda _watch, tell: tell.answer(damaged))
    watch = Watch(LiveHost(), 20.0)
    end = time.monotonic() + 20
    while watch._children.names() and time.monotonic() < end:  # noqa: SLF001
        watch.look()
        time.sleep(0.01)
    assert watch.stop() is None


def test_a_gpu_slowed_down_under_load_is_found() -> None:
    hot = summary([look({"temperature_c": 91, "throttle": ["hw-thermal-slowdown"]})])
    tests = msgspec.structs.replace(ran(result("sustained")), under_load=hot)
    quiet = nvml(A100)
    idle = msgspec.structs.replace(
        quiet, gpus=[msgspec.structs.replace(gpu, throttle=[]) for gpu in quiet.gpus or ()]
    )
    found = ask("thermal-or-power-throttle", idle, tests)
    assert isinstance(found, Hit)
    assert "was slowed down at 91 °C during the self-tests" in found.headline
    capped = summary([look({"temperature_c": 70, "throttle": ["sw-power-cap"]})])
    fine = msgspec.structs.replace(tests, under_load=capped)
    assert not isinstance(ask("thermal-or-power-throttle", idle, fine), Hit)


class Host(LiveHost):
    """A machine whose NVML answers, or hangs."""

    def __init__(self, *, hangs: bool) -> None:
        super().__init__("")
        self._hangs = hangs

    def nvml(self) -> Answer[dict[str, Any]]:
        if self._hangs:
            time.sleep(1000)
        return Answer({"init_code": 0, "gpus": [{"name": "NVIDIA A100", "temperature": 40}]}, "")


@pytest.mark.process
def test_it_looks_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observed, "_EVERY", 0.01)
    watch = Watch(Host(hangs=False), 10)
    end = time.monotonic() + 5
    found = None
    while not found and time.monotonic() < end:
        watch.look()
        time.sleep(0.05)
        found = summary(watch._looks)  # noqa: SLF001  # what it has seen so far
    (gpu,) = watch.stop() or []
    assert gpu.course[0].temperature_c == 40


@pytest.mark.process
def test_a_driver_that_hangs_holds_nobody_up() -> None:
    watch = Watch(Host(hangs=True), 10)
    start = time.monotonic()
    watch.look()
    assert watch.stop() is None
    assert time.monotonic() - start < 9
