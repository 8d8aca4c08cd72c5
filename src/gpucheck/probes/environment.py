"""The environment variables that control CUDA, NCCL and the loader, by name.

Names are listed one by one and never selected by prefix, because a prefix may match tokens. Values
that look like secrets are never kept.
"""

import re

from gpucheck.facts.system import HIDDEN, OTHER_NAMES, PATH_NAMES, Environment
from gpucheck.language import say
from gpucheck.machine import Host

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "files"
MOST_CHARACTERS = 4096
"""A longer value is truncated."""

_MARKS = ("password", "passwd", "secret", "token", "apikey", "api_key", "bearer ", "credential")
_LOGIN = r"://[^/@\s:]{1,256}:[^/@\s]{1,256}@"  # a user and a password; a user alone is no secret
_WORDS = r"[A-Za-z0-9_+=]{32,}"


def collect(host: Host) -> Environment:
    """Return the listed variables that are set."""
    env = host.env()
    variables = {
        name: _kept(name, env[name]) for name in sorted(PATH_NAMES + OTHER_NAMES) if name in env
    }
    return Environment(
        variables=variables, sources={"variables": say("the environment of gpucheck")}
    )


def _kept(name: str, value: str) -> str:
    # Bytes that are not UTF-8 arrive as lone surrogates, which cannot be written to a report.
    cut = value[:MOST_CHARACTERS].encode("utf-8", "replace").decode()
    return HIDDEN if _looks_secret(cut, is_path=name in PATH_NAMES) else cut


def _looks_secret(value: str, *, is_path: bool) -> bool:
    """Whether the value names a secret, contains a login, or has a word that can only be a key."""
    lower = value.lower()
    if re.search(_LOGIN, value):
        return True
    if is_path:
        return any(f"{mark}=" in lower for mark in _MARKS)
    return any(mark in lower for mark in _MARKS) or any(
        any(c.isdecimal() for c in word) and any(c.isalpha() for c in word)
        for word in re.findall(_WORDS, value)
    )
