"""Python of the machine that is examined: parsed, never executed, without a word about it."""

import warnings

import pytest
from each import each

from gpucheck.probes.reading.torch_files import parsed


@each("text", ["x = '\\d'\n", "x = 1if 2 else 3\n", "assert (1, 'x')\n"])
def test_what_python_would_warn_of_is_parsed_silently(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(parsed(text).body) == 1


@each("text", ["x = (", "\0", "x = " + "-" * 100_000 + "1", "(" * 5000])
def test_what_is_no_python_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed(text)
