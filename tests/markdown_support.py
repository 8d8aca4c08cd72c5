"""What of a Markdown page may take effect: everything that is not taken literally."""

import re

_BLOCK = re.compile(r"(?ms)^(`{3,})sh$.*?^\1$")
_SPAN = re.compile(r"(?<![\\`])(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
"""Code between runs of as many backticks, neither of which is part of a longer one."""


def outside_code(text: str) -> str:
    """Return a page without its blocks and spans of code."""
    return _SPAN.sub("", _BLOCK.sub("", text))
