"""Facts that torch's compiled libraries contain, read without loading them."""

import re

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host

_CODE = rb"(?:sm|compute)_[0-9]{2,3}[af]?"
_ARCH_LIST = rb"\x00(" + _CODE + rb"(?: " + _CODE + rb")*)\x00"
_LONG_LIST = _CODE + rb"(?: " + _CODE + rb"){2,31}(?=\x00)"
"""So many codes in a row, up to the end of a string, are not a coincidence."""
_CHECK_FAIL = b"torchCheckFailEPKcS2_jRK"
"""Prefix of a symbol of libc10 whose last argument is a std::string."""
_NEW_STRING = b"NSt7__cxx11"
_OLD_STRING = b"Ss"


def arch_list(host: Host, path: str) -> Answer[list[str]]:
    """Return the result of ``torch.cuda.get_arch_list()``: the codes the build was made for.

    The build writes them as one constant into libtorch_python: ``sm_80 sm_90 compute_90``. If there
    are several different constants of this form, the answer is unknown.
    """
    for start in (b"\x00sm_", b"\x00compute_"):
        hits = host.find_in_file(path, start, section=".rodata")
        if hits.value is None:
            return Answer(None, hits.source, hits.problem, hits.missing)
        found = {match for hit in hits.value for match in re.findall(_ARCH_LIST, hit)}
        lists = [match for match in found if b" " in match] or list(found)
        if len(lists) == 1:
            return Answer(lists[0].decode().split(" "), hits.source)
        if lists:
            return Answer(
                None, path, say("it has {count} lists of architectures", count=len(lists))
            )
    return _after_other_bytes(host, path)


def _after_other_bytes(host: Host, path: str) -> Answer[list[str]]:
    """Find a list that does not start a string: a compiler may place it after other bytes."""
    hits = host.find_in_file(path, b" sm_", section=".rodata")
    found = {match for hit in hits.value or () for match in re.findall(_LONG_LIST, hit)}
    # Each code of the list is a match of its own; the later ones have only the rest of the list.
    lists = [
        codes for codes in found if not any(codes != other and codes in other for other in found)
    ]
    if len(lists) == 1:
        return Answer(lists[0].decode().split(" "), hits.source)
    return Answer(None, path, say("it has no list of architectures"))


def cxx11_abi(host: Host, path: str) -> Answer[bool]:
    """Whether torch was built with C++11 strings, from the symbols of libc10."""
    hits = host.find_in_file(path, _CHECK_FAIL, context=len(_NEW_STRING), section=".dynstr")
    return hits.map(_abi)


def _abi(hits: list[bytes]) -> bool | None:
    ends = [hit.partition(_CHECK_FAIL)[2] for hit in hits]
    if any(end.startswith(_NEW_STRING) for end in ends):
        return True
    return False if any(end.startswith(_OLD_STRING) for end in ends) else None
