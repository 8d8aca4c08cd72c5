"""What has figures to draw: self-tests of a stress run, pre-flights of many ranks. Shared."""

import functools

import msgspec
import preflight_samples
import report_samples
from preflight_samples import culprit, link, ranks, result

from gpucheck.cluster.judgement import Result
from gpucheck.engine import Report
from gpucheck.facts.claims import Severity
from gpucheck.facts.preflight import Bandwidth, HeldUp, PairBandwidth, Phase
from gpucheck.facts.selftests import GpuUnderLoad, Measurement, Moment, SelfTest, SelfTests

_GIB = 1 << 30


@functools.cache
def stress() -> Report:
    """Four GPUs after the self-tests of the level stress, one of them slower over one path."""
    devices = [f"cuda:{at}" for at in range(4)]
    copies = [
        Measurement(name=f"{here} to {there}", unit="GB/s",
                    value=24.7 if {here, there} == {"cuda:1", "cuda:3"} else 231.5)
        for here in devices for there in devices if here != there
    ]  # fmt: skip
    busbw = [
        Measurement(name=f"{name} of {size}, busbw", unit="GB/s", value=value * factor)
        for name, factor in (("all-reduce", 1.0), ("all-gather", 0.8))
        for size, value in (("64 KiB", 2.1), ("1 MiB", 31.0), ("16 MiB", 160.2), ("128 MiB", 221.0))
    ]
    results = [
        SelfTest(name="peer-copy", device=",".join(devices), status="passed", seconds=9.0,
                 measurements=copies),
        SelfTest(name="all-reduce", rank=3, world_size=4, device="cuda:3", status="passed",
                 seconds=4.2, measurements=busbw),
        *(
            SelfTest(name="sustained", device=device, status="passed", seconds=31.0,
                     began=12.0 + at / 10,
                     data={"rates": [600.0 - 3 * at - second / 3 for second in range(60)]})
            for at, device in enumerate(devices)
        ),
    ]  # fmt: skip
    load = [
        GpuUnderLoad(
            index=at, device_name="NVIDIA H100 80GB HBM3", uuid=preflight_samples.uuid(at),
            temperature_max_c=70 + at, looks=30,
            course=[
                Moment(seconds=2.0 * look, temperature_c=38 + min(30 + at, 4 * look),
                       memory_used_bytes=(2 + at) * _GIB + look * _GIB // 8)
                for look in range(30)
            ],
        )
        for at in range(4)
    ]  # fmt: skip
    tests = SelfTests(
        level="stress", devices=devices, results=results, under_load=load, seconds=120.0,
        import_seconds=2.0,
    )  # fmt: skip
    sections = report_samples.healthy().snapshot.sections.values()
    return report_samples.report(
        *(section for section in sections if section.name != "selftests"), tests
    )


def held_up(phase: Phase, step: int = 1, **seconds: float) -> HeldUp:
    """Return where a rank was held up; the seconds by phase, with ``_`` for ``-``."""
    timed = {name.replace("_", "-"): value for name, value in seconds.items()}
    return msgspec.convert({"step": step, "phase": phase, "phase_seconds": timed}, HeldUp)


@functools.cache
def waits() -> Result:
    """Three ranks waited for one; of the third of them no seconds are known."""
    job_ranks = ranks(
        2, 2,
        r0={"held_up": held_up("enter", start=0.2, connect=1.3, enter=58.5)},
        r1={"held_up": held_up("enter", start=0.2, connect=2.0, enter=58.0)},
        r2={"status": "stopped", "phase": "enter"},
        r3={
            "status": "timed-out", "phase": "connect",
            "held_up": held_up("connect", start=0.2, set_device=1.0, connect=60.0),
        },
    )  # fmt: skip
    evidence = "never entered the first all-reduce"
    return result(job_ranks, culprit("rank-hangs", job_ranks[3], evidence, "connect"))


@functools.cache
def large(nodes: int = 512, per_node: int = 8) -> Result:
    """A job of 4,096 ranks: one hangs, a node is slow, and all the others wait."""
    count = nodes * per_node
    waiting: dict[str, object] = {"status": "stopped", "phase": "enter"}
    rates: dict[str, object] = {"rates": {"fp32 TFLOP/s": 23.1, "pinned copy to the GPU GB/s": 9.0}}
    changed = {
        f"r{at}": {
            **waiting,
            **(rates if at // per_node == 3 else {}),
            "held_up": held_up("enter", start=0.1, connect=4.0 + at % 5 / 10, enter=55.5),
        }
        for at in range(count)
    }
    changed["r37"] = {
        "status": "timed-out", "phase": "connect", "detail": "no answer for 60 s",
        "held_up": held_up("connect", start=0.1, connect=60.0),
    }  # fmt: skip
    job_ranks = ranks(nodes, per_node, **changed)
    slow = [
        culprit("gpu-slow", job_ranks[at], "fp32 23.1 TFLOP/s, 45 % of the median", "alone",
                severity=Severity.WARNING)
        for at in range(3 * per_node, 4 * per_node)
    ]  # fmt: skip
    widths = [
        Bandwidth(collective="all-reduce", ranks=count, nodes=nodes, size=128 << 20,
                  seconds=0.01, busbw=41.0),
        Bandwidth(collective="all-reduce", ranks=per_node, nodes=1, size=128 << 20, seconds=0.001,
                  busbw=301.0, compared_with="480 GB/s, published for 8 x H100 at 128 MiB",
                  share=301 / 480),
    ]  # fmt: skip
    pairs = [
        PairBandwidth(ends=(at, at + 1), of="nodes", size=1 << 27, busbw=44.0 + at % 7)
        for at in range(0, nodes, 2)
    ]
    return result(
        job_ranks,
        culprit("rank-hangs", job_ranks[37], "never entered the first all-reduce", "connect"),
        *slow, bandwidths=widths, pair_bandwidths=pairs,
    )  # fmt: skip


@functools.cache
def links(nodes: int = 8) -> Result:
    """Every pair of nodes was measured, and one link is slow."""
    job_ranks = ranks(nodes, 8)
    pairs = [
        PairBandwidth(ends=(end, other), of="nodes", size=1 << 27,
                      busbw=11.2 if (end, other) == (1, 4) else 46.0 + (end * other) % 5)
        for end in range(nodes) for other in range(end + 1, nodes)
    ]  # fmt: skip
    slow = link(job_ranks[8], job_ranks[32], "link-slow")
    return result(job_ranks, slow, pair_bandwidths=pairs)
