"""The self-tests as a reader wants them: one line for what is alike, with the figures."""

from collections.abc import Iterator

import msgspec

from gpucheck.probes.selftests import Measurement, SelfTest, SelfTests
from gpucheck.render.words import clean, plural

_MOST_PLACES = 4
_MOST_MEASUREMENTS = 40


class Line(msgspec.Struct, frozen=True):
    """The results of one test that ended in the same way."""

    name: str
    status: str
    words: str


def lines_of(tests: SelfTests) -> list[Line]:
    """Return a line for each test and each way in which it ended; the order is that of the run."""
    groups: dict[tuple[str, str, str], list[SelfTest]] = {}
    for result in tests.results or ():
        groups.setdefault((result.name, result.status, result.detail), []).append(result)
    names = list(dict.fromkeys(result.name for result in tests.results or ()))
    ordered = sorted(groups.items(), key=lambda group: names.index(group[0][0]))
    return [
        Line(name, status, f"{places(results)}{_end(detail, results)}")
        for (name, status, detail), results in ordered
    ]


def places(results: list[SelfTest]) -> str:
    """Return where the results come from, in few words."""
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
    """Return each library that was not the file that gpucheck had expected."""
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
