"""Reads small configuration files of a user, and removes private parts of addresses in them."""

from gpucheck.facts import Answer
from gpucheck.facts.secrets import public_address
from gpucheck.language import say
from gpucheck.machine import Host

# Bytes; chosen: people write these files by hand. What is larger is said to be unknown.
_LIMIT = 64 * 1024


def read_settings(host: Host, path: str) -> Answer[str]:
    """Return the text of a configuration file; one that is too large is a problem."""
    answer = host.read_bytes(path, _LIMIT + 1)
    if answer.value is not None and len(answer.value) > _LIMIT:
        return Answer(None, path, say("it has more than {limit} KiB", limit=_LIMIT >> 10))
    return answer.map(lambda data: data.decode("utf-8", "replace"))


def address_in(value: str, source: str) -> Answer[str]:
    """Return an address without private parts; text of any other form is dropped."""
    kept = public_address(value)
    if not kept:
        return Answer(None, source, say("the configured value is not a web address"))
    return Answer(kept, source)


def misunderstood(path: str) -> Answer[str]:
    """Return the problem of a file whose form is not understood."""
    return Answer(None, path, say("its form is not understood"))
