"""The plots of self-tests: copies between GPUs, collectives over sizes, the course of a load."""

import re
from collections.abc import Iterator, Sequence

from gpucheck.facts.selftests import GpuUnderLoad, SelfTest, SelfTests
from gpucheck.language import in_turn, listed, say
from gpucheck.output.html.charts import heat, plots
from gpucheck.output.html.charts.plots import Across, PlotLine, Stretch
from gpucheck.output.html.charts.svg import Chart, drawable, number
from gpucheck.output.words import clean, headed, size

_COPY = re.compile(r"(cuda:\d{1,4}) to (cuda:\d{1,4})")
_BUSBW = re.compile(r"([a-z-]{1,40}) of (\d{1,12}) (B|KiB|MiB|GiB), busbw")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_LEAST = 2  # points of a line
_GIB = 1 << 30  # bytes
# Chosen: above what a run makes (120 moments); a saved report may have any number.
_MOST_POINTS = 1000
_MOST_STRETCHES = 8  # chosen: more shaded stretches cover the whole plot
_SUSTAINED = "sustained"


def charts(tests: SelfTests) -> Iterator[Chart]:
    """Yield each plot that these results have the figures for."""
    for found in (_copies(tests), _collectives(tests), _rates(tests)):
        if found is not None:
            yield found
    yield from _courses(tests)


def _copies(tests: SelfTests) -> Chart | None:
    """Return the bandwidth between every two GPUs."""
    speeds: dict[tuple[str, str], float] = {}
    for _path, result in tests.of("peer-copy"):
        for measurement in result.measurements:
            ends = _COPY.fullmatch(measurement.name)
            if ends is not None and measurement.value is not None and drawable(measurement.value):
                speeds[ends[1], ends[2]] = measurement.value
    if not speeds:
        return None
    names = sorted({end for ends in speeds for end in ends}, key=lambda name: int(name[5:]))
    place = {name: at for at, name in enumerate(names)}
    pairs = {(place[here], place[there]): value for (here, there), value in speeds.items()}
    title = say("Copies between GPUs")
    return heat.chart("copies", title, heat.Matrix(names, pairs, each_way=True))


def _collectives(tests: SelfTests) -> Chart | None:
    """Return the bus bandwidth of each collective over the size of the message."""
    points: dict[str, dict[float, float]] = {}
    for _path, result in tests.of():
        for measurement in result.measurements:
            found = _BUSBW.fullmatch(measurement.name)
            if found is not None and measurement.value is not None and drawable(measurement.value):
                at = int(found[2]) * _UNITS[found[3]]
                points.setdefault(found[1], {})[at] = measurement.value
    shown = [
        PlotLine(name, sorted(points_of_line.items()))
        for name, points_of_line in points.items()
        if len(points_of_line) >= _LEAST
    ][: plots.MOST_LINES]
    if not shown:
        return None
    best = max((y, plotted.name, x) for plotted in shown for x, y in plotted.points)
    caption = say(
        "Bus bandwidth by size of the message. The highest is {value} GB/s: {collective} of "
        "{size}.",
        value=number(best[0]), collective=best[1], size=size(int(best[2])),
    )  # fmt: skip
    across = Across(say("Size of the message"), _bytes, doubles=True)
    return plots.chart("busbw", say("Bus bandwidth of collectives"), caption, "GB/s", across, shown)


def _bytes(value: float) -> str:
    return size(int(value)) if value >= _UNITS["MiB"] else f"{value / _UNITS['KiB']:g} KiB"


def _rates(tests: SelfTests) -> Chart | None:
    """Return the speed of each second under sustained load."""
    shown = []
    for _path, result in tests.of(_SUSTAINED):
        rates = result.data.get("rates")
        rates_shown = rates[:_MOST_POINTS] if isinstance(rates, list) else []
        points = [
            (float(at), float(rate))
            for at, rate in enumerate(rates_shown, start=1)
            if isinstance(rate, (int, float)) and drawable(rate)
        ]
        if len(points) >= _LEAST:
            shown.append(PlotLine(clean(result.place), points))
    if not shown:
        return None
    chosen = sorted(shown, key=lambda plotted: min(y for _x, y in plotted.points))[
        : plots.MOST_LINES
    ]
    low = chosen[0]
    caption = say(
        "The rate of each second under full load. The lowest is {value} TFLOP/s on {place}.",
        value=number(min(y for _x, y in low.points)), place=low.name,
    )  # fmt: skip
    title = say("Rate under sustained load")
    return plots.chart("rates", title, caption, "TFLOP/s", Across(say("Seconds")), chosen)


def _courses(tests: SelfTests) -> Iterator[Chart]:
    """Yield temperature and memory during the self-tests, with the time of ``sustained`` marked."""
    heat_of: list[PlotLine] = []
    memory_of: list[PlotLine] = []
    for at, gpu in enumerate(tests.under_load or ()):
        name = _gpu(gpu, at)
        course = [sample for sample in gpu.course[:_MOST_POINTS] if drawable(sample.seconds)]
        heat_of += _line(name, [(sample.seconds, sample.temperature_c) for sample in course])
        used = [(sample.seconds, sample.memory_used_bytes) for sample in course]
        memory_of += _line(name, used, unit=_GIB)
    seconds, marked, when = Across(say("Seconds")), _sustained(tests), _when(tests)
    if heat_of:
        chosen = _highest(heat_of)
        caption = say("The hottest was {gpu} with {celsius} °C.", gpu=chosen[0].name,
                   celsius=number(_most(chosen[0])))  # fmt: skip
        title = say("Temperature during the self-tests")
        words = in_turn([caption, *when])
        yield plots.chart("temperature", title, words, "°C", seconds, chosen, marked)
    if memory_of:
        chosen = _highest(memory_of)
        caption = say("{gpu} used the most memory: {used} GiB.", gpu=chosen[0].name,
                   used=number(_most(chosen[0])))  # fmt: skip
        title = say("Memory in use during the self-tests")
        words = in_turn([caption, *when])
        yield plots.chart("memory", title, words, "GiB", seconds, chosen, marked)


def _runs(tests: SelfTests) -> list[SelfTest]:
    return [result for _path, result in tests.of(_SUSTAINED) if result.status != "skipped"]


def _sustained(tests: SelfTests) -> list[Stretch]:
    """Return when ``sustained`` ran on any GPU: times that overlap are one stretch."""
    times = sorted(
        (run.began, run.began + run.seconds)
        for run in _runs(tests)
        if run.began is not None and drawable(run.began) and drawable(run.seconds)
    )
    found: list[Stretch] = []
    for first, last in times:
        if found and first <= found[-1].last:
            found[-1] = Stretch(_SUSTAINED, found[-1].first, max(last, found[-1].last))
        elif len(found) < _MOST_STRETCHES:
            found.append(Stretch(_SUSTAINED, first, last))
    return found


def _when(tests: SelfTests) -> list[str]:
    """Return a sentence about when ``sustained`` ran; none if it was not run."""
    if not _runs(tests):
        return []
    marked = [
        say("{least} to {most}", least=number(stretch.first), most=number(stretch.last))
        for stretch in _sustained(tests)
    ]
    if not marked:
        return [say("The report does not say when the self-test {test} ran.", test=_SUSTAINED)]
    return [
        say(
            "The self-test {test} ran in the seconds {marked}.",
            test=_SUSTAINED,
            marked=listed(marked),
        )
    ]


def _line(name: str, course: Sequence[tuple[float, int | None]], unit: int = 1) -> list[PlotLine]:
    """Return the line through what is known; none through a single point."""
    points = [(at, value / unit) for at, value in course if value is not None and drawable(value)]
    return [PlotLine(name, points)] if len(points) >= _LEAST else []


def _highest(plotted: Sequence[PlotLine]) -> list[PlotLine]:
    return sorted(plotted, key=_most, reverse=True)[: plots.MOST_LINES]


def _most(plotted: PlotLine) -> float:
    return max(y for _x, y in plotted.points)


def _gpu(gpu: GpuUnderLoad, at: int) -> str:
    number_of = at if gpu.index is None else gpu.index
    return headed(f"GPU {number_of}", clean(gpu.device_name or ""))
