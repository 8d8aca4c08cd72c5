"""Words of commands for Windows, where nobody knows whether cmd or PowerShell will run them.

PowerShell takes typographic quotes for plain ones. In double quotes it still expands ``$name``, and
cmd ``%NAME%``.
"""

import re

_PLAIN = re.compile(r"[\w:\\/.=+~*?\[\]-]+")
"""A word that neither shell changes outside quotes."""
_REFUSED = re.compile(r'["\u201c-\u201e\x00-\x1f\x7f]')
"""What ends a string in double quotes, or a line. No path of Windows has a plain one."""
_SINGLE = re.compile(r"['\u2018-\u201b]")
"""What ends a string in single quotes for PowerShell."""


def in_either(word: str) -> str:
    """Return the word as both shells take it; "" if there is no way to write it for both."""
    if _PLAIN.fullmatch(word):
        return word
    return "" if _REFUSED.search(word) or "$(" in word else f'"{word}"'


def set_in_powershell(variable: str, value: str) -> str:
    """Return the command that sets a variable in PowerShell."""
    return f"$env:{variable} = '{_SINGLE.sub(lambda found: found[0] * 2, value)}'"


def set_in_cmd(variable: str, value: str) -> str:
    """Return the command that sets a variable in cmd; "" if there is no way to write it."""
    return "" if _REFUSED.search(value) else f'set "{variable}={value}"'
