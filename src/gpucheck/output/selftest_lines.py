"""The self-tests for a reader: one line for equal results, with the figures."""

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from gpucheck.facts.selftests import Measurement, SelfTest, SelfTests
from gpucheck.language import Sentence, in_series, in_turn, say, say_many
from gpucheck.output.words import bracketed, clean, counted, headed, in_parts

_MOST_PLACES = 4  # chosen: a line of a terminal; more are named by the first and the last
_MOST_MEASUREMENTS = 40  # chosen: a saved report may have any number
_COUNTS: dict[str, Callable[[int], Sentence]] = {
    "passed": lambda count: say("{count} passed", count=count),
    "failed": lambda count: say("{count} failed", count=count),
    "skipped": lambda count: say("{count} skipped", count=count),
    "timed-out": lambda count: say("{count} timed-out", count=count),
    "crashed": lambda count: say("{count} crashed", count=count),
}


class ResultLine(msgspec.Struct, frozen=True):
    """The results of one test that ended in the same way."""

    name: str
    status: str
    words: str


def lines_of(tests: SelfTests) -> list[ResultLine]:
    """Return a line for each test and each kind of result, in the order of the run."""
    groups: dict[tuple[str, str, str], list[SelfTest]] = {}
    for result in tests.results or ():
        groups.setdefault((result.name, result.status, result.detail), []).append(result)
    names = list(dict.fromkeys(result.name for result in tests.results or ()))
    ordered = sorted(groups.items(), key=lambda group: names.index(group[0][0]))
    return [
        ResultLine(name, status, _with_end(places(results), detail, results))
        for (name, status, detail), results in ordered
    ]


def totals(tests: SelfTests) -> str:
    """Return the number of tests by result; one with several devices or ranks counts once."""
    counts = Counter(_status(tests, name) for name in _names(tests))
    return in_series([_COUNTS[status](count) for status, count in counts.items()])


def passed(tests: SelfTests) -> str:
    """Return in a sentence what passed, where and in which time, and how much was left out."""
    statuses = Counter(_status(tests, name) for name in _names(tests))
    good = [result for _path, result in tests.of() if result.status == "passed"]
    parts: list[str] = [
        say_many(
            statuses["passed"],
            "{count} self-test passed on {devices} in {seconds:.1f} s",
            "{count} self-tests passed on {devices} in {seconds:.1f} s",
            devices=_where(tests, _devices(good)),
            seconds=tests.seconds or 0,
        )
    ]
    if statuses["skipped"]:
        parts.append(_COUNTS["skipped"](statuses["skipped"]))
    everywhere = _devices([result for _path, result in tests.of()])
    left_out = [device for device in everywhere if device not in _devices(good)]
    if left_out:
        parts.append(say("{devices} not tested", devices=in_series(left_out)))
    return in_parts(parts)


def basis(tests: SelfTests) -> str:
    """Return the basis of the verdict if only the self-tests were run."""
    if tests.import_seconds:
        words = say(
            "Level {level}, import torch in {seconds:.1f} s.",
            level=tests.level, seconds=tests.import_seconds,
        )  # fmt: skip
    else:
        words = say("Level {level}.", level=tests.level)
    if any(device != "cpu" for device in _devices([result for _path, result in tests.of()])):
        return words
    if tests.devices:
        why = say("No GPU was tested: a test on the CPU says nothing about a GPU.")
    else:
        why = say("Torch sees no GPU: a test on the CPU says nothing about a GPU.")
    return in_turn([words, why])


def left_out(tests: SelfTests) -> Iterator[str]:
    """Return for each test the parts that it left out, with the reasons."""
    for name in _names(tests):
        by_reason: dict[str, dict[str, None]] = {}
        for _path, result in tests.of(name):
            not_tested = result.data.get("not_tested")
            for part, reason in not_tested.items() if isinstance(not_tested, dict) else ():
                by_reason.setdefault(_of_worker(reason), {})[_of_worker(part)] = None
        if by_reason:
            groups = [bracketed(in_series(list(parts)), why) for why, parts in by_reason.items()]
            yield say("left out of {test}: {parts}", test=clean(name), parts=in_parts(groups))


def _of_worker(text: object) -> str:
    """Return a text of a worker; the catalogues may have it, since our workers speak English."""
    words = clean(str(text))
    return Sentence(words) if words else words


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
        return say("the CPU")
    called = tests.device_names()
    many = len(devices) > _MOST_PLACES
    words = in_series(devices)
    if many:
        words = say("{first} to {last}", first=devices[0], last=devices[-1])
    return bracketed(words, counted([called.get(device, "GPU") for device in devices]))


def places(results: list[SelfTest]) -> str:
    """Return the places of the results, in few words."""
    names = [result.place for result in sorted(results, key=lambda result: result.rank)]
    if len(names) > _MOST_PLACES and results[0].world_size > 1:
        return say("{count} ranks", count=len(names))
    if len(names) > _MOST_PLACES:
        return say(
            "{count} GPUs, {first} to {last}", count=len(names), first=names[0], last=names[-1]
        )
    return in_series([clean(name) for name in names])


def _with_end(where: str, detail: str, results: list[SelfTest]) -> str:
    """Return where the results are from, with their detail or with the longest time."""
    if detail:
        return headed(where, clean(detail, 600))
    return say(
        "{places}, {seconds:.2f} s",
        places=where,
        seconds=max(result.seconds for result in results),
    )


def measured(tests: SelfTests) -> Iterator[str]:
    """Return every measurement in words."""
    for result in tests.results or ():
        for measurement in result.measurements[:_MOST_MEASUREMENTS]:
            yield say(
                "{test} on {place}: {measurement}",
                test=result.name, place=clean(result.place), measurement=in_words(measurement),
            )  # fmt: skip


def loaded_otherwise(tests: SelfTests) -> Iterator[str]:
    """Return each library that was loaded from another file than gpucheck had predicted."""
    for result in tests.results or ():
        loaded = result.data.get("loaded_otherwise")
        for library in loaded if isinstance(loaded, list) else ():
            if isinstance(library, dict):
                words = say(
                    "{library}: expected {predicted}, loaded {loaded}",
                    library=clean(str(library.get("soname"))),
                    predicted=clean(str(library.get("predicted") or "")) or say("none"),
                    loaded=clean(str(library.get("loaded") or "")) or say("none"),
                )
                yield say("not as predicted: {words}", words=words)


def in_words(measurement: Measurement) -> str:
    """Return a measurement with its bound, if it has one."""
    value = say("not finite") if measurement.value is None else f"{measurement.value:.4g}"
    words = say(
        "{name} {value} {unit}",
        name=measured_what(measurement.name),
        value=value,
        unit=clean(measurement.unit),
    )
    if not measurement.unit:
        words = say("{name} {value}", name=measured_what(measurement.name), value=value)
    if measurement.bound is None:
        return words
    bound = say("bound {bound:.4g}", bound=measurement.bound)
    return bracketed(words, headed(bound, clean(measurement.bound_from or "")))


_WHOLE: dict[str, Sentence] = {
    str(name): name
    for name in (
        say("copy speed within the memory"),
        say("copy within the memory, read and written"),
        say("import"),
        say("largest batch"),
        say("lowest rate of a second"),
        say("memory for it, at most"),
        say("memory tested"),
        say("rate at the end"),
        say("speed against this machine's CPU"),
        say("sustained rate"),
        say("pageable memory from the GPU"),
        say("pageable memory to the GPU"),
        say("pinned memory from the GPU"),
        say("pinned memory to the GPU"),
        say("training step"),
        say("training step on this machine's CPU"),
    )
}


def measured_what(name: str) -> str:
    """Return the name of a measurement; one that is not known stays as it is."""
    if name in _WHOLE:
        return _WHOLE[name]
    before, comma, last = clean(name).rpartition(", ")
    if comma and last == "time":
        return say("{what}, time", what=before)
    rate_of, rate, rest = clean(name).rpartition(" rate")
    if rate and not rest:
        return say("{what} rate", what=rate_of)
    of, error, rest = clean(name).rpartition(": largest error")
    if error and not rest:
        return say("{what}: largest error", what=of)
    return clean(name)
