"""Addresses of package indexes, as they may be kept: without a login, a query or a key."""

import re

from gpucheck.facts.environment import HIDDEN

# A login, a query and what follows # may hold secrets, so each is a group that can be left out.
# Characters that are not in here make the whole address unknown instead of half hidden.
_FORM = (
    r"(?P<scheme>[Hh][Tt][Tt][Pp][Ss]?)://(?P<login>[^/@\s\\]{0,1024}@)?"
    r"(?P<place>(?:[A-Za-z0-9][A-Za-z0-9.-]{0,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?)"
    r"(?P<path>(?:/[A-Za-z0-9._~%+-]{0,255}){0,32})(?P<rest>[?#][^\s@]{0,4096})?"
)
_LONGEST = 2048  # chosen: longer than any index's address; what is longer is not kept at all
# Chosen: shorter than any usual token (GitLab's have 26 characters, GitHub's 40), and longer than a
# version or a CUDA tag in a path.
_SHORTEST_KEY = 24
_CONDA_TOKEN = "t"  # noqa: S105  # anaconda.org has https://host/t/TOKEN/channel


def public_address(address: str) -> str:
    """Return an http(s) address without what may be secret; "" if it has another form.

    A login and a query are left out. A part of the path that looks like a key is hidden. The last
    slash is left out as well, so that equal places have equal addresses.
    """
    found = re.fullmatch(_FORM, address) if len(address) <= _LONGEST else None
    if found is None:
        return ""
    parts = found["path"].split("/")
    kept = [
        HIDDEN if _is_key(part) or parts[at - 1 : at] == [_CONDA_TOKEN] else part
        for at, part in enumerate(parts)
    ]
    return f"{found['scheme'].lower()}://{found['place'].lower()}{'/'.join(kept).rstrip('/')}"


def is_plain(address: str) -> bool:
    """Whether an http(s) address has neither a login nor a query, and nothing that is odd."""
    found = re.fullmatch(_FORM, address) if len(address) <= _LONGEST else None
    return found is not None and not found["login"] and not found["rest"]


def names_a_build(address: str) -> bool:
    """Whether an address ends with a build of PyTorch: ``.../whl/cu128``."""
    return re.fullmatch(r"cpu|xpu|cu[0-9]{2,3}|rocm[0-9.]+", address.rpartition("/")[2]) is not None


def place_and_path(address: str) -> tuple[str, str]:
    """Return host with port, and path, of an address from :func:`public_address`."""
    place, slash, path = address.partition("://")[2].partition("/")
    return place, slash + path


def _is_key(part: str) -> bool:
    return (
        len(part) >= _SHORTEST_KEY
        and any(char.isdecimal() for char in part)
        and any(char.isalpha() for char in part)
    )
