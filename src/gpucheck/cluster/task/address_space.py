"""Whether a worker failed because the limit on its address space (``ulimit -v``) left no memory."""

import re
import resource
from collections.abc import Iterable

from gpucheck.cluster.diagnose.own_errors import ADDRESS_SPACE
from gpucheck.language import say

_REFUSED = re.compile(
    r"\bMemoryError\b|Cannot allocate memory|std::bad_alloc|can't allocate memory"
    r"|failed to map segment from shared object|Memory allocation still failed"
)
"""What Python, the loader, C++, PyTorch and OpenBLAS say where memory is refused."""


def explained(kind: str, detail: str, printed: Iterable[object] = ()) -> tuple[str, str]:
    """Return kind and detail of a failure, with the limit if that explains it.

    Without a limit the same words mean that the memory of the host ran out.
    """
    soft, _hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return kind, detail
    if not any(isinstance(one, str) and _REFUSED.search(one) for one in (detail, *printed)):
        return kind, detail
    return ADDRESS_SPACE, say(
        "the limit on its address space (ulimit -v) is {size} MiB, and memory was refused: {why}",
        size=soft >> 20,
        why=detail,
    )
