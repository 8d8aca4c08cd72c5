"""The cuDNN that wheels were compiled against, and what torch accepts in its place."""

from each import each

from gpucheck.tables import Tables
from gpucheck.tables.cudnn import CudnnRules

RULES = Tables().get(CudnnRules)


@each(
    ("torch", "cuda", "compiled"),
    [
        ("2.9.1", "12.8", "9.8.0"),
        ("2.9.1+cu128", "12.8", "9.8.0"),
        ("2.6.0", "12.4", "9.1.0"),
        ("2.9.1", "12.6", None),
        ("2.9.0", "12.8", "9.8.0"),
        ("2.10.0", "12.8", "9.10.2"),
        ("2.3.1", "12.1", None),
        ("2.9.1.dev20251001", "12.8", None),
        ("2.9.1", None, None),
        (None, "12.8", None),
    ],
)
def test_compiled(torch: str | None, cuda: str | None, compiled: str | None) -> None:
    assert RULES.compiled(torch, cuda) == compiled


@each(
    ("torch", "compiled", "runtime", "accepted"),
    [
        ("2.9.1", "9.8.0", "9.1.0", False),
        ("2.9.1", "9.8.0", "9.8.0", True),
        ("2.9.1", "9.8.0", "9.10.2.21", True),
        ("2.9.1", "9.8.0", "8.9.7", False),
        ("2.9.1", "9", "8", False),
        ("2.9.1", "9", "9", None),
        (None, "9.8.0", "9.1.0", False),
        (None, "9.8.0", "9.9.0", True),
        ("2.99.0", "9.8.0", "8.9.7", None),
        ("2.9.1", "none", "9.1.0", None),
    ],
)
def test_accepted(torch: str | None, compiled: str, runtime: str, *, accepted: bool | None) -> None:
    assert RULES.runtime_accepted(torch, compiled, runtime) is accepted
