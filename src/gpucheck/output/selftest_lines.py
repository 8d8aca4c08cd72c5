"""The self-tests for a reader: one line for equal results, with the figures."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from gpucheck.facts.selftests import Measurement, SelfTest, SelfTests
from gpucheck.output.words import clean, counted, plural

_MOST_PLACES = 4
_MOST_MEASUREMENTS = 40


class Line(msgspec.Struct, frozen=True):
    """The results of one test that ended in the same way."""

    name: str
    status: str
    words: str


def lines_of(tests: SelfTests) -> list[Line]:
    """Return a line for each test and each kind of result, in the order of the run."""
    groups: dict[tuple[str, str, str], list[SelfTest]] = {}
    for result in tests.results or ():
        groups.setdefault((result.name, result.status, result.detail), []).append(result)
    names = list(dict.fromkeys(result.name for result in tests.results or ()))
    ordered = sorted(groups.items(), key=lambda group: names.index(group[0][0]))
    return [
        Line(name, status, f"{places(results)}{_end(detail, results)}")
        for (name, status, detail), results in ordered
    ]


def totals(tests: SelfTests) -> str:
    """Return the number of tests by result; one with several devices or ranks counts once."""
    counts = Counter(_status(tests, name) for name in _names(tests))
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def passed(tests: SelfTests) -> str:
    """Return in a sentence what passed, where and in which time, and how much was left out."""
    statuses = Counter(_status(tests, name) for name in _names(tests))
    good = [result for _path, result in tests.of() if result.status == "passed"]
    sentence = (
        f"{plural(statuses['passed'], 'self-test')} passed on {_where(tests, _devices(good))} "
        f"in {tests.seconds or 0:.1f} s"
    )
    if statuses["skipped"]:
        sentence += f"; {statuses['skipped']} skipped"
    everywhere = _devices([result for _path, result in tests.of()])
    left_out = [device for device in everywhere if device not in _devices(good)]
    return sentence + (f"; {', '.join(left_out)} not tested" if left_out else "")


def basis(tests: SelfTests) -> str:
    """Return the basis of the verdict if only the self-tests were run."""
    imported = tests.import_seconds
    words = f"Level {tests.level}" + (f", import torch in {imported:.1f} s." if imported else ".")
    if any(device != "cpu" for device in _devices([result for _path, result in tests.of()])):
        return words
    why = "No GPU was tested" if tests.devices else "Torch sees no GPU"
    return f"{words} {why}: a test on the CPU says nothing about one."


def left_out(tests: SelfTests) -> Iterator[str]:
    """Return for each test the parts that it left out, with the reasons."""
    for name in _names(tests):
        by_reason: dict[str, dict[str, None]] = {}
        for _path, result in tests.of(name):
            told = result.data.get("not_tested")
            for part, reason in told.items() if isinstance(told, dict) else ():
                by_reason.setdefault(clean(str(reason)), {})[clean(str(part))] = None
        if by_reason:
            groups = [f"{', '.join(parts)} ({reason})" for reason, parts in by_reason.items()]
            yield f"{clean(name)}: {'; '.join(groups)}"


def _names(tests: SelfTests) -> list[str]:
    return list(dict.fromkeys(result.name for _path, result in tests.of()))


def _status(tests: SelfTests, name: str) -> str:
    """Return the overall result of a test: failed if it failed anywhere."""
    results = [result for _path, result in tests.of(name)]
    bad = next((result.status for result in results if result.went_wrong), None)
    is_passed = any(result.status == "passed" for result in results)
    return bad or ("passed" if is_passed else "skipped")


def _devices(results: list[SelfTest]) -> list[str]:
    """Return the devices of these results, each once; import torch runs on none of them."""
    own = [result for result in results if result.name != "import-torch"] or results
    return list(dict.fromkeys(device for result in own for device in result.device.split(",")))


def _where(tests: SelfTests, devices: list[str]) -> str:
    if devices == ["cpu"]:
        return "the CPU"
    called = tests.device_names()
    many = len(devices) > _MOST_PLACES
    words = f"{devices[0]} to {devices[-1]}" if many else ", ".join(devices)
    return f"{words} ({counted([called.get(device, 'GPU') for device in devices])})"


def places(results: list[SelfTest]) -> str:
    """Return the places of the results, in few words."""
    names = [result.place for result in sorted(results, key=lambda result: result.rank)]
    if len(names) > _MOST_PLACES and results[0].world_size > 1:
        return plural(len(names), "rank")
    if len(names) > _MOST_PLACES:
        return f"{plural(len(names), 'GPU')}, {names[0]} to {names[-1]}"
    return ", ".join(clean(name) for name in names)


def _end(detail: str, results: list[SelfTest]) -> str:
    if detail:
        return f": {clean(detail, 600)}"
    return f", {max(result.seconds for result in results):.2f} s"


def measured(tests: SelfTests) -> Iterator[str]:
    """Return every measurement in words."""
    for result in tests.results or ():
        for one in result.measurements[:_MOST_MEASUREMENTS]:
            yield f"{result.name} on {clean(result.place)}: {in_words(one)}"


def loaded_otherwise(tests: SelfTests) -> Iterator[str]:
    """Return each library that was loaded from another file than gpucheck had predicted."""
    for result in tests.results or ():
        for one in result.data.get("loaded_otherwise") or ():
            yield (
                f"{clean(str(one.get('soname')))}: expected {clean(one.get('predicted') or 'none')}"
                f", loaded {clean(one.get('loaded') or 'none')}"
            )


def in_words(one: Measurement) -> str:
    """Return a measurement with its bound, if it has one."""
    value = "not finite" if one.value is None else f"{one.value:.4g}"
    words = f"{clean(one.name)} {value} {clean(one.unit)}".rstrip()
    if one.bound is None:
        return words
    source = f": {clean(one.bound_from)}" if one.bound_from else ""
    return f"{words} (bound {one.bound:.4g}{source})"
