"""Whether an installed wheel is the one that torch pins."""

from gpucheck.facts.torch import PinnedWheel
from gpucheck.language import say
from gpucheck.tables.versions import at_least, compare, parse

_SIGNS = ("==", "~=", "!=", "<=", ">=", "<", ">")  # the longer signs first: "<" also begins "<="


def pinned_wheel(
    project: str, specifier: str, installed: str, sources: dict[str, str]
) -> PinnedWheel:
    """Compare the installed version of a wheel, "" if it is not installed, with torch's pin."""
    fits = meets(specifier, installed) if installed else None
    missing = not installed
    problems: dict[str, str] = (
        {}
        if missing or fits is not None
        else {"state": say("{specifier} is not understood", specifier=specifier)}
    )
    return PinnedWheel(
        project=project,
        specifier=specifier,
        installed=installed,
        state="missing" if missing else None if fits is None else "ok" if fits else "other-version",
        sources=sources,
        problems=problems,
    )


def meets(specifier: str, version: str) -> bool | None:
    """Return whether a version meets a specifier such as ``<14,>=13.2.86`` or ``==13.2.86.*``.

    None if either is not purely numeric, unless the two are the same text.
    """
    answers = [_meets(part, version) for part in specifier.split(",") if part]
    if False in answers:
        return False
    return None if None in answers else True


def _meets(part: str, version: str) -> bool | None:
    operator = next((sign for sign in _SIGNS if part.startswith(sign)), "")
    wanted = part.removeprefix(operator)
    if operator == "==" and wanted == version:
        return True
    have, want = parse(version.partition("+")[0]), parse(wanted.removesuffix(".*"))
    if have is None or want is None or not operator or ("*" in wanted and operator != "=="):
        return None
    if wanted.endswith(".*"):
        return (*have, *(0,) * len(want))[: len(want)] == want
    if operator == "~=":
        return at_least(have, want) and (*have, *(0,) * len(want))[: len(want) - 1] == want[:-1]
    order = compare(have, want)
    return {
        "==": order == 0,
        "!=": order != 0,
        "<=": order <= 0,
        ">=": order >= 0,
        "<": order < 0,
        ">": order > 0,
    }[operator]
