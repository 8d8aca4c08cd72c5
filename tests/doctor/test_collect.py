"""The collector: probes side by side, in the order of their needs, whatever they do."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import probe_index
import pytest
from support import machine

from gpucheck import probes as probes_module
from gpucheck.doctor import collector as collect_module
from gpucheck.doctor.collector import Collected, Collector, _packed
from gpucheck.facts import Answer, Section
from gpucheck.facts.driver import Driver, GpuProcess, Nvml, NvmlGpu
from gpucheck.facts.request import Request
from gpucheck.facts.system import LimitsOfProcess, OsFamily, Pci, System
from gpucheck.language import Sentence, as_said, say
from gpucheck.machine import Host, LiveHost
from gpucheck.machine import children as children_module
from gpucheck.machine.candidates import TargetWish
from gpucheck.machine.children import Children, Tell, Work
from gpucheck.probes import Probe, all_probes, lanes
from gpucheck.tables import Tables
from gpucheck.tables.gpus import PciDevices

pytestmark = pytest.mark.process


class _Own(Probe, frozen=True, kw_only=True):
    """A probe that is a function of the test."""

    work: Callable[..., Section]
    wanted: dict[str, Any]

    @property
    def collect(self) -> Callable[..., Section]:
        return self.work

    @property
    def needs(self) -> dict[str, Any]:
        return self.wanted


def _probe(section: type[Section], work: Callable[..., Section], **needs: Any) -> Probe:  # noqa: ANN401
    sections = frozenset(need for need in needs.values() if issubclass(need, Section))
    return _Own(section.name, section, sections, 0.5, work=work, wanted=needs)


def _in_a_lane(*probes: Probe) -> list[Probe]:
    return [msgspec.structs.replace(probe, lane="one") for probe in probes]


def _run(
    monkeypatch: pytest.MonkeyPatch,
    *probes: Probe,
    host: Host | None = None,
    **options: Any,  # noqa: ANN401
) -> Collected:
    monkeypatch.setattr(collect_module, "all_probes", lambda: probes)
    collector = Collector(
        host or LiveHost(),
        Tables(),
        wish=TargetWish(python=None),
        request=Request(gpus=2),
        **options,
    )
    return collector.collect()


def _good(host: Host) -> Nvml:
    assert host.origin == "live"
    return Nvml(init_code=0, gpus=[NvmlGpu(index=0)], sources={"*": "NVML"})


def _hang(host: Host) -> Driver:
    host.stage("open of /dev/nvidia0")
    time.sleep(60)
    return Driver()


def _crash(host: Host) -> Driver:  # noqa: ARG001
    os.abort()


def _raise(host: Host) -> Driver:  # noqa: ARG001
    raise RuntimeError("garbage")


def _silent(host: Host) -> LimitsOfProcess:  # noqa: ARG001
    return LimitsOfProcess(problems={"*": "Linux only"})


def test_children_are_heard_between_the_steps_of_other_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[str] = []
    begun_meanwhile = False

    def steps() -> Iterator[None]:
        nonlocal begun_meanwhile
        for _ in range(1000):
            yield
            if begun_meanwhile := "pci" in begun:
                return
            time.sleep(0.01)

    def follows(host: Host, nvml: Nvml) -> Pci:  # noqa: ARG001
        return Pci(nvswitches=2)

    launch = Collector._launch  # noqa: SLF001

    def noted(self: Collector, children: Children, name: str, probes: Sequence[Probe]) -> None:
        begun.append(name)
        launch(self, children, name, probes)

    monkeypatch.setattr(Collector, "_launch", noted)
    first, second = _probe(Nvml, _good, host=Host), _probe(Pci, follows, host=Host, nvml=Nvml)
    collected = _run(monkeypatch, first, second, meanwhile=steps())
    assert collected.snapshot.get(Pci).nvswitches == 2
    assert begun_meanwhile


def test_sections_and_runs_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = _run(monkeypatch, _probe(Nvml, _good, host=Host)).snapshot
    assert snapshot.get(Nvml).gpus == [NvmlGpu(index=0)]
    assert snapshot.get(Request).gpus == 2
    assert [(run.name, run.status, run.problem) for run in snapshot.runs.runs] == [
        ("nvml", "ok", None)
    ]


def _nested(host: Host) -> Nvml:  # noqa: ARG001
    why = say("error {code}", code=15)
    process = GpuProcess(pid=1, problems={"process_name": say("not found")})
    first = NvmlGpu(index=0, problems={"uuid": say("{source}: {why}", source="NVML", why=why)})
    second = NvmlGpu(
        index=1,
        processes=[process],
        sources={"index": say("gpucheck itself"), "uuid": "NVML"},
        problems={"handle_code": "text of \udcff another"},
    )
    return Nvml(gpus=[first, second], problems={"*": say("not asked")})


def test_the_sentences_of_nested_facts_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = _run(monkeypatch, _probe(Nvml, _nested, host=Host)).snapshot
    gpus = snapshot.get(Nvml).gpus
    assert gpus is not None
    first, second = gpus
    assert isinstance(snapshot.get(Nvml).problem("cuda"), Sentence)
    why = first.problem("uuid")
    assert isinstance(why, Sentence)
    assert (why.key, why) == ("{source}: {why}", "NVML: error 15")
    assert as_said(why)["params"]["why"] == {"key": "error {code}", "params": {"code": 15}}  # type: ignore[index]
    assert second.processes is not None
    (process,) = second.processes
    assert isinstance(process.problem("process_name"), Sentence)
    assert isinstance(second.source("index"), Sentence)
    assert not isinstance(second.source("uuid"), Sentence)
    assert second.problem("handle_code") == "text of \\udcff another"


def test_a_hang_costs_its_deadline_and_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    start = time.monotonic()
    snapshot = _run(
        monkeypatch, _probe(Driver, _hang, host=Host), _probe(Nvml, _good, host=Host)
    ).snapshot
    assert time.monotonic() - start < 20
    assert snapshot.get(Nvml).init_code == 0
    assert snapshot.get(Driver).module_loaded is None
    assert "timed-out" in snapshot.problem("driver.module_loaded")
    assert "open of /dev/nvidia0" in snapshot.problem("driver.module_loaded")


@pytest.mark.parametrize(
    ("work", "words"), [(_crash, "SIGABRT"), (_raise, "RuntimeError: garbage")]
)
def test_a_crash_is_a_result(
    monkeypatch: pytest.MonkeyPatch, work: Callable[..., Section], words: str
) -> None:
    snapshot = _run(monkeypatch, _probe(Driver, work, host=Host)).snapshot
    (run,) = snapshot.runs.runs
    assert run.status == "crashed"
    assert words in (run.problem or "")
    assert words in snapshot.problem("driver.module_loaded")


def test_a_section_without_any_fact_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = _run(monkeypatch, _probe(LimitsOfProcess, _silent, host=Host)).snapshot.runs.runs
    assert (run.status, run.problem) == ("unknown", "Linux only")


def test_a_probe_runs_after_the_sections_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def second(nvml: Nvml, devices: PciDevices) -> Pci:
        return Pci(nvswitches=len(nvml.gpus or ()), other_display_vendors=[devices.name])

    snapshot = _run(
        monkeypatch,
        *_in_a_lane(
            _probe(Pci, second, nvml=Nvml, devices=PciDevices), _probe(Nvml, _good, host=Host)
        ),
    ).snapshot
    assert snapshot.get(Pci).nvswitches == 1
    assert snapshot.get(Pci).other_display_vendors == ["pci_devices"]


def test_what_a_failed_probe_was_needed_for_runs_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def second(driver: Driver) -> Pci:
        return Pci(other_display_vendors=[driver.problem("module_loaded")])

    snapshot = _run(
        monkeypatch,
        *_in_a_lane(_probe(Driver, _raise, host=Host), _probe(Pci, second, driver=Driver)),
    ).snapshot
    assert "garbage" in (snapshot.get(Pci).other_display_vendors or [""])[0]


def test_probes_of_one_lane_share_a_child_and_a_failure_ends_only_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pid(host: Host) -> LimitsOfProcess:  # noqa: ARG001
        return LimitsOfProcess(open_files=os.getpid())

    def same(host: Host, limits: LimitsOfProcess) -> Pci:  # noqa: ARG001
        return Pci(nvswitches=int(limits.open_files == os.getpid()))

    def after(limits: LimitsOfProcess) -> Nvml:
        return Nvml(init_code=int(limits.open_files == os.getpid()))

    def hang(host: Host, limits: LimitsOfProcess) -> Driver:  # noqa: ARG001
        return _hang(host)

    snapshot = _run(
        monkeypatch,
        *_in_a_lane(
            _probe(LimitsOfProcess, pid, host=Host),
            _probe(Pci, same, host=Host, limits=LimitsOfProcess),
            _probe(Driver, hang, host=Host, limits=LimitsOfProcess),
            _probe(Nvml, after, limits=LimitsOfProcess),
        ),
    ).snapshot
    assert snapshot.get(Pci).nvswitches == 1
    assert snapshot.get(Nvml).init_code == 0
    assert [(run.name, run.status) for run in snapshot.runs.runs if run.status != "ok"] == [
        ("driver", "timed-out")
    ]


def test_a_chain_of_needs_within_a_lane_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    def second(nvml: Nvml) -> Driver:
        return Driver(module_loaded=bool(nvml.gpus))

    def third(driver: Driver) -> Pci:
        return Pci(nvswitches=int(driver.module_loaded or 0))

    def fourth(pci: Pci, limits: LimitsOfProcess) -> System:
        return System(kernel=f"{pci.nvswitches} and {limits.open_files}")

    chain = _in_a_lane(
        _probe(System, fourth, pci=Pci, limits=LimitsOfProcess),
        _probe(Pci, third, driver=Driver),
        _probe(Driver, second, nvml=Nvml),
    )
    others = [
        _probe(Nvml, _good, host=Host),
        _probe(LimitsOfProcess, lambda: LimitsOfProcess(open_files=40)),
    ]
    snapshot = _run(monkeypatch, *chain, *others).snapshot
    assert [run.status for run in snapshot.runs.runs] == ["ok"] * 5
    assert snapshot.get(System).kernel == "1 and 40"


def test_a_chain_goes_on_after_the_failure_of_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def second(driver: Driver) -> Nvml:
        return Nvml(init_code=len(driver.problem("module_loaded")))

    def third(nvml: Nvml, driver: Driver) -> Pci:  # noqa: ARG001
        return Pci(nvswitches=nvml.init_code)

    snapshot = _run(
        monkeypatch,
        *_in_a_lane(
            _probe(Driver, _raise, host=Host),
            _probe(Pci, third, nvml=Nvml, driver=Driver),
            _probe(Nvml, second, driver=Driver),
        ),
    ).snapshot
    assert snapshot.get(Pci).nvswitches


def test_a_lane_waits_for_what_it_needs_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def second(nvml: Nvml) -> Pci:
        return Pci(nvswitches=len(nvml.gpus or ()))

    snapshot = _run(
        monkeypatch, _probe(Pci, second, nvml=Nvml), _probe(Nvml, _good, host=Host)
    ).snapshot
    assert snapshot.get(Pci).nvswitches == 1


def test_the_index_says_what_the_probes_say() -> None:
    written = Path(probes_module.__path__[0], probes_module.INDEX).read_text("utf-8")
    assert written == probe_index.index(), "python tools/probe_index.py"
    for probe in all_probes():
        assert probe.sections == {
            need for need in probe.needs.values() if issubclass(need, Section)
        }


def test_a_probe_that_the_index_lacks_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "none.json").write_text("{}")
    monkeypatch.setattr(probes_module, "INDEX", str(tmp_path / "none.json"))
    assert all_probes.__wrapped__() == all_probes()


def test_every_need_of_the_real_probes_is_filled_by_one() -> None:
    filled = {probe.section for probe in all_probes()}
    assert all(probe.sections <= {*filled, Request} for probe in all_probes())
    assert len(filled) == len(all_probes())
    assert set(lanes(all_probes())) >= {"target", "files", "packages"}


def test_a_skipped_probe_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = _run(monkeypatch, _probe(Nvml, _good, host=Host), skip=["nvml"]).snapshot
    assert snapshot.runs.runs == ()
    assert "skip" in snapshot.problem("nvml.gpus")


def test_the_limit_of_the_whole_run_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    start = time.monotonic()
    _run(monkeypatch, _probe(Driver, _hang, host=Host), timeout=0.1)
    assert time.monotonic() - start < 20


def test_progress_names_what_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[list[str]] = []
    _run(
        monkeypatch,
        _probe(Driver, _hang, host=Host),
        progress=lambda names, _seconds: heard.append(list(names)),
    )
    assert ["driver"] in heard


def test_progress_does_not_name_a_child_that_has_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = Collector._work  # noqa: SLF001  # to let the child linger after its answer

    def lingering(self: Collector, probes: Sequence[Probe]) -> Work:
        def work(tell: Tell) -> None:
            real(self, probes)(tell)
            time.sleep(0.6)

        return work

    monkeypatch.setattr(Collector, "_work", lingering)
    heard: list[list[str]] = []
    collected = _run(
        monkeypatch,
        _probe(Nvml, _good, host=Host),
        progress=lambda names, _seconds: heard.append(list(names)),
    )
    assert collected.snapshot.get(Nvml).init_code == 0
    assert heard == []


def test_a_recorded_machine_is_asked_in_this_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pids: list[int] = []

    def here(host: Host) -> Pci:
        pids.append(os.getpid())
        return Pci(nvswitches=len(host.env()))

    snapshot = _run(
        monkeypatch,
        _probe(Pci, here, host=Host),
        _probe(Driver, _raise, host=Host),
        host=machine(tmp_path, env={"A": "b"}),
    ).snapshot
    assert pids == [os.getpid()]
    assert snapshot.get(Pci).nvswitches == 1
    assert [run.status for run in snapshot.runs.runs] == ["crashed", "ok"]


@pytest.mark.parametrize(
    ("system", "driver", "children"),
    [("linux", True, 2), ("linux", False, 1), ("windows", False, 2), ("macos", False, 2)],
)
def test_without_a_driver_a_linux_machine_is_asked_in_one_child(
    monkeypatch: pytest.MonkeyPatch, system: OsFamily, *, driver: bool, children: int
) -> None:
    """Elsewhere nobody knows where to look for one."""
    identity = msgspec.structs.replace(LiveHost().identity(), os=system)
    monkeypatch.setattr(LiveHost, "identity", lambda _self: identity)
    monkeypatch.setattr(LiveHost, "exists", lambda _self, path: Answer(driver, path))

    def nvml_of_child(host: Host) -> Nvml:  # noqa: ARG001
        return Nvml(init_code=os.getpid())

    def other(host: Host) -> LimitsOfProcess:  # noqa: ARG001
        return LimitsOfProcess(open_files=os.getpid())

    limits = msgspec.structs.replace(_probe(LimitsOfProcess, other, host=Host), lane="files")
    snapshot = _run(monkeypatch, _probe(Nvml, nvml_of_child, host=Host), limits).snapshot
    pids = {snapshot.get(Nvml).init_code, snapshot.get(LimitsOfProcess).open_files}
    assert len(pids) == children


def test_where_threads_take_the_place_of_children_each_probe_tells_its_own_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(children_module, "_FORKS", False)
    staged, release = threading.Event(), threading.Event()

    def hangs(host: Host) -> Driver:
        staged.wait(10)
        host.stage("open of /dev/nvidia0")
        release.wait(10)
        return Driver()

    def follows(host: Host) -> Pci:
        host.stage("nvmlInit")
        staged.set()
        release.wait(10)
        return Pci()

    snapshot = _run(
        monkeypatch, _probe(Driver, hangs, host=Host), _probe(Pci, follows, host=Host)
    ).snapshot
    release.set()
    problems = {run.name: run.problem or "" for run in snapshot.runs.runs}
    assert "open of /dev/nvidia0" in problems["driver"]
    assert "nvmlInit" in problems["pci"]


def test_a_thread_that_was_given_up_changes_nothing_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children_module, "_FORKS", False)
    given_up, ended = threading.Event(), threading.Event()

    def late(host: Host) -> Driver:  # noqa: ARG001
        given_up.wait(10)
        ended.set()
        return Driver(module_release="580.95.05")

    def goes_on(host: Host) -> Pci:  # noqa: ARG001
        ended.wait(10)
        time.sleep(0.3)
        return Pci(nvswitches=2)

    failed = Collector._failed  # noqa: SLF001

    def noted(self: Collector, probe: Probe, *more: Any) -> None:  # noqa: ANN401
        failed(self, probe, *more)
        given_up.set()

    monkeypatch.setattr(Collector, "_failed", noted)
    patient = msgspec.structs.replace(_probe(Pci, goes_on, host=Host), deadline=10.0)
    snapshot = _run(monkeypatch, _probe(Driver, late, host=Host), patient).snapshot
    assert snapshot.get(Pci).nvswitches == 2
    assert snapshot.get(Driver).module_release is None
    assert "timed-out" in snapshot.get(Driver).problem("module_release")


def test_a_number_of_more_than_64_bits_leaves_the_rest_of_the_section() -> None:
    packed = _packed(System(hostname="a", memory_total_bytes=10**23))

    section = msgspec.msgpack.decode(packed, type=System)
    assert (section.hostname, section.memory_total_bytes) == ("a", None)
