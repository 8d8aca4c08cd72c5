"""Compares the libraries that ``import torch`` loaded with those predicted from the files."""

import msgspec

from gpucheck.facts import builtins
from gpucheck.facts.loading import Loading
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.probes.loading.reading.compare import compare
from gpucheck.selftests.catalogue import IMPORT

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
