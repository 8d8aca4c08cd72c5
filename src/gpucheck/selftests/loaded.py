"""Compares the libraries that ``import torch`` loaded with those predicted from the files."""

from collections.abc import Iterable

import msgspec

from gpucheck.facts import builtins
from gpucheck.facts.libraries import Loading
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.probes.loading.reading.owners import library_name, stem
from gpucheck.selftests.plan import IMPORT

_LIBRARIES = "libraries"
_MOST = 20  # chosen: one is enough to doubt the prediction


def compared(tests: SelfTests, snapshot: Snapshot) -> SelfTests:
    """Return the self-tests with the differences in place of the list of loaded files."""
    results = [
        _compared(result, snapshot.get(Loading)) if result.name == IMPORT else result
        for result in tests.results or ()
    ]
    return msgspec.structs.replace(tests, results=results)


def _compared(result: SelfTest, predicted: Loading) -> SelfTest:
    data = dict(result.data)
    loaded = data.pop(_LIBRARIES, None)
    if isinstance(loaded, list):
        found = compare(predicted, [path for path in loaded if isinstance(path, str)])
        if found:
            data["loaded_otherwise"] = builtins(found[:_MOST])
    return msgspec.structs.replace(result, data=data)


class Difference(msgspec.Struct, frozen=True):
    """A library whose file differs from the prediction; "" if only one side has it."""

    soname: str
    predicted: str
    loaded: str


def compare(predicted: Loading, maps: Iterable[str]) -> list[Difference]:
    """Return where the files of a live process (links resolved) differ from the prediction.

    Only libraries in the section are compared. A library that is opened on first use may be absent.
    There is no prediction for a library that torch does not bring, because another package may load
    it. An unknown prediction has no differences.
    """
    if predicted.libraries is None:
        return []
    files: dict[str, list[str]] = {}
    for path in sorted(set(maps)):
        files.setdefault(stem(path.rpartition("/")[2]), []).append(path)
    differences: list[Difference] = []
    expected: dict[str, set[str]] = {}
    certain = [(library, True) for library in predicted.libraries]
    for library, must in certain + [(library, False) for library in predicted.runtime_opened or []]:
        real = library.real_path or ""
        names = {stem(library.soname), stem(real.rpartition("/")[2])}
        there = [path for name in names for path in files.get(name, ())]
        for name in names:
            expected.setdefault(name, set()).add(real)
        if real not in there and (must or there):
            differences.append(Difference(library.soname, real, there[0] if there else ""))
    reported = {difference.loaded for difference in differences}
    for name, paths in files.items():
        for path in paths:
            known = expected.get(name)
            unexpected = known is None or path not in known
            if library_name(path.rpartition("/")[2]) and unexpected and path not in reported:
                differences.append(Difference(path.rpartition("/")[2], "", path))
    return differences
