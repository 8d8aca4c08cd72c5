"""Parses ``Requires-Dist`` lines: name, extras, specifier, and whether the marker holds.

The ``packaging`` library could do this too. Importing ``packaging.requirements`` in the process
that reads torch's metadata was measured: it took 50 ms of CPU time, a tenth of a whole static
check, and the check went from 1/11 to 1/9 of the wall time of ``collect_env`` on the same busy
machine; at most 1/12 is allowed. The tests compare the results with those of ``packaging``.
"""

import re
from collections.abc import Callable, Mapping

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.torch import Interpreter
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.probes.reading.dist_info import DistInfo, header, normalise, values

_NAME = r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?"
# PEP 508; === before ==, or its last sign would be left over.
_TOKEN = re.compile(
    r"\s*(?:(===|==|~=|!=|<=|>=|<|>)|([()])|'([^']*)'|\"([^\"]*)\"|([A-Za-z_][A-Za-z0-9_.]*))"
)
_VERSION = r"[0-9]+(?:\.[0-9]+)*"
# Chosen: real markers have some ten tokens and two levels; the reader calls itself for a bracket.
_MAX_TOKENS = 400
_MAX_DEPTH = 20
_OPERATORS = ("===", "==", "~=", "!=", "<=", ">=", "<", ">", "in", "not in")


class Requirement(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement; the specifier contains no blanks: ``<14,>=13.0.3``."""

    project: str
    extras: tuple[str, ...] = ()
    specifier: str = ""
    marker: str = ""


def parse(text: str) -> Requirement:
    """Parse a requirement.

    Raises:
        ValueError: the text does not begin with a name.
    """
    found = re.match(_NAME, text)
    if found is None:
        raise ValueError(say("{text} is not a requirement", text=repr(text[:80])))
    rest, _, marker = text[found.end() :].partition(";")
    specifier = "".join(rest.split()).removeprefix("(").removesuffix(")")
    extras = [
        normalise(extra.strip()) for extra in (found.group(2) or "").split(",") if extra.strip()
    ]
    return Requirement(
        project=normalise(found.group(1)),
        extras=tuple(extras),
        specifier=specifier,
        marker=marker.strip(),
    )


def torch_requirement(lines: list[str]) -> str | None:
    """Return the specifier of torch among requirements: "" for any version, None if not required.

    Requirements of extras do not count.
    """
    for line in lines:
        if not line.lower().startswith("torch"):
            continue
        requirement = parse(line)
        if requirement.project == "torch" and "extra" not in requirement.marker:
            return requirement.specifier
    return None


def specifiers(
    lines: list[str], environment: Mapping[str, str], matters: Callable[[str], bool]
) -> dict[str, str]:
    """Return which versions the requirements demand of the projects that matter, by project.

    A requirement whose marker does not hold is left out, and so is one that cannot be parsed.
    """
    found: dict[str, str] = {}
    extra = environment.get("extra")
    for line in lines:
        if not extra and "extra" in line.partition(";")[2]:
            continue  # most lines of large packages; to parse them all takes too long
        try:
            requirement = parse(line)
            if (
                requirement.specifier
                and matters(requirement.project)
                and holds(requirement.marker, environment)
            ):
                before = found.get(requirement.project)
                found[requirement.project] = (
                    f"{before},{requirement.specifier}" if before else requirement.specifier
                )
        except ValueError:
            continue
    return found


def holds(marker: str, environment: Mapping[str, str]) -> bool:
    """Whether the marker holds in the environment; an empty marker does.

    Raises:
        ValueError: the marker is not understood, or it uses a variable that the environment lacks.
    """
    if not marker:
        return True
    reader = _Reader(_tokens(marker), environment)
    answer = reader.either(0)
    if not reader.at_end():
        raise ValueError(f"marker not understood: {marker[:80]}")
    return answer


def _tokens(marker: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    end = len(marker.rstrip())
    while at < end:
        token = _TOKEN.match(marker, at)
        if token is None or len(found) > _MAX_TOKENS:
            raise ValueError(f"marker not understood: {marker[:80]}")
        operator, bracket, single, double, word = token.groups()
        if operator or bracket:
            found.append(("sign", operator or bracket))
        elif word is not None:
            found.append(("word", word))
        else:
            found.append(("text", single if single is not None else double))
        at = token.end()
    return found


class _Reader:
    """Parses a marker by its grammar: ``or`` of ``and`` of comparisons and parentheses."""

    def __init__(self, tokens: list[tuple[str, str]], environment: Mapping[str, str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._environment = environment

    def at_end(self) -> bool:
        return self._at >= len(self._tokens)

    def either(self, depth: int) -> bool:
        if depth > _MAX_DEPTH:
            raise ValueError("marker with too many brackets")
        answer = self._both(depth)
        while self._take("word", "or"):
            answer = self._both(depth) or answer
        return answer

    def _both(self, depth: int) -> bool:
        answer = self._term(depth)
        while self._take("word", "and"):
            answer = self._term(depth) and answer
        return answer

    def _term(self, depth: int) -> bool:
        if self._take("sign", "("):
            answer = self.either(depth + 1)
            if not self._take("sign", ")"):
                raise ValueError("marker with an open bracket")
            return answer
        left, left_name = self._operand()
        operator = self._operator()
        right, right_name = self._operand()
        if "extra" in (left_name, right_name):
            left, right = normalise(left), normalise(right)
        as_versions = any("version" in side for side in (left_name, right_name))
        return _compare_versions(left, operator, right) if as_versions else _compare(
            left, operator, right
        )  # fmt: skip

    def _take(self, kind: str, text: str) -> bool:
        taken = not self.at_end() and self._tokens[self._at] == (kind, text)
        self._at += taken
        return taken

    def _next(self) -> tuple[str, str]:
        if self.at_end():
            raise ValueError("marker that ends early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _operand(self) -> tuple[str, str]:
        """Return the value, and the name of the variable that it comes from ("" for a literal)."""
        kind, text = self._next()
        if kind == "text":
            return text, ""
        if kind != "word" or text not in self._environment:
            raise ValueError(f"marker asks for {text}")
        return self._environment[text], text

    def _operator(self) -> str:
        _kind, text = self._next()
        if text == "not":
            text = f"not {self._next()[1]}"
        if text not in _OPERATORS:
            raise ValueError(f"marker has no operator {text}")
        return text


def _compare(left: str, operator: str, right: str) -> bool:
    if operator == "in":
        return left in right
    if operator == "not in":
        return left not in right
    if operator in ("==", "==="):
        return left == right
    if operator == "!=":
        return left != right
    raise ValueError(f"{operator} between words")


def _compare_versions(left: str, operator: str, right: str) -> bool:
    if operator in ("in", "not in", "==="):
        return _compare(left, operator, right)
    ours, theirs = _numbers(left), _numbers(right)
    if operator == "~=":
        return (
            ours >= theirs
            and ours[: len(right.split(".")) - 1] == theirs[: len(right.split(".")) - 1]
        )
    answers = {
        "==": ours == theirs,
        "!=": ours != theirs,
        "<": ours < theirs,
        "<=": ours <= theirs,
        ">": ours > theirs,
        ">=": ours >= theirs,
    }
    return answers[operator]


def _numbers(version: str) -> list[int]:
    """Return the numbers of a plain version, padded so that 3.10 and 3.10.0 are equal."""
    if not re.fullmatch(_VERSION, version):
        raise ValueError(f"marker with the version {version[:40]}")
    numbers = [int(part) for part in version.split(".")]
    return numbers + [0] * (4 - len(numbers))


# The versions of the CUDA libraries and of triton that torch's metadata requires.

_STARTS = ("nvidia-", "cuda-", "triton", "pytorch-triton")
_META = "cuda-toolkit"
"""A distribution without files; its extras name the libraries of one CUDA release."""
_SYSTEMS = {
    "linux": ("linux", "Linux", "posix"),
    "win": ("win32", "Windows", "nt"),
    "win32": ("win32", "Windows", "nt"),
    "macosx": ("darwin", "Darwin", "posix"),
}
_MACHINES = {"amd64": "AMD64", "win32": "x86"}
_IMPLEMENTATIONS = {"cpython": "CPython", "pypy": "PyPy"}

_Parts = dict[str, dict[str, None]]
"""The parts of the specifier of each project, each once and in the order of the metadata."""


def marker_environment(python: Interpreter) -> dict[str, str]:
    """Return the variables of the target that markers may use; unknown ones are left out."""
    environment = {"extra": ""}
    if python.version:
        environment["python_full_version"] = python.version
        environment["python_version"] = ".".join(python.version.split(".")[:2])
    if python.implementation:
        environment["implementation_name"] = python.implementation
        name = _IMPLEMENTATIONS.get(python.implementation, python.implementation)
        environment["platform_python_implementation"] = name
    words = (python.platform or "").split("-")
    if words[0] in _SYSTEMS:
        sys_platform, system, os_name = _SYSTEMS[words[0]]
        machine = _MACHINES.get(words[-1], words[-1])
        environment.update(
            sys_platform=sys_platform,
            platform_system=system,
            os_name=os_name,
            platform_machine=machine,
        )
    return environment


def pins(
    host: Host, info: DistInfo, infos: list[DistInfo], environment: Mapping[str, str]
) -> Answer[dict[str, str]]:
    """Return a specifier per name; the extras of ``cuda-toolkit`` come from its own metadata."""
    lines = header(host, info)
    if lines.value is None:
        return Answer(None, lines.source, lines.problem, lines.missing)
    found: _Parts = {}
    for requirement in _that_matter(values(lines.value, "Requires-Dist"), environment):
        _add(found, requirement)
        if requirement.project != _META:
            continue
        meta = next((other for other in infos if other.project == _META), None)
        inner = header(host, meta).value if meta is not None else None
        for extra in requirement.extras:
            required = _naming(extra, values(inner or [], "Requires-Dist"))
            for follow in _that_matter(required, {**environment, "extra": extra}):
                _add(found, follow)
    return Answer({name: ",".join(parts) for name, parts in found.items()}, lines.source)


def exact(specifier: str) -> str:
    """Return the version that ``==9.1.0.70`` or ``==13.2.86.*`` requires; "" for a range."""
    if not specifier.startswith("==") or "," in specifier:
        return ""
    return specifier.lstrip("=").removesuffix(".*")


def _naming(extra: str, lines: list[str]) -> list[str]:
    """Return the lines whose marker may name the extra; parsing all lines takes too long."""
    return [line for line in lines if f"'{extra}'" in line or f'"{extra}"' in line]


def _that_matter(lines: list[str], environment: Mapping[str, str]) -> list[Requirement]:
    """Return the requirements of CUDA libraries and triton that apply to the target.

    One that cannot be parsed is left out: a wrong pin is worse than an unknown one.
    """
    kept = []
    for line in lines:
        if not line.lower().replace("_", "-").startswith(_STARTS):
            continue
        try:
            requirement = parse(line)
            if holds(requirement.marker, environment):
                kept.append(requirement)
        except ValueError:
            continue
    return kept


def _add(found: _Parts, requirement: Requirement) -> None:
    parts = found.setdefault(requirement.project, {})
    parts.update((part, None) for part in requirement.specifier.split(",") if part)
