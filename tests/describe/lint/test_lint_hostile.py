"""Project files that are meant to break or delay the linter."""

import contextlib
import time
import tracemalloc
from pathlib import Path

import pytest
import yaml
from each import each

from gpucheck.describe.files import lint as lint_module
from gpucheck.describe.files import text as limits
from gpucheck.describe.files.complaint import FileTarget
from gpucheck.describe.files.lint import Beside, beside, compose_files, lint, project_of
from gpucheck.describe.files.model import Project, normal_version
from gpucheck.describe.files.text import UnreadableError, _refuse_bombs
from gpucheck.tables import Tables

pytestmark = pytest.mark.hostile

TABLES = Tables()
TARGET = FileTarget(gpus=("5090",), driver="470")
MB = 1024 * 1024
LONG = {
    "blanks": b" " * MB,
    "quotes": b"RUN '" + b"'a" * (MB // 2),
    "dollars": b"RUN " + b"${" * (MB // 2),
    "operators": b"RUN " + b"&&" * (MB // 2),
    "lines": b"RUN a \\\n" * (MB // 16),
    "ands": b"RUN a && \\\n" * (MB // 16),
    "froms": b"FROM nvidia/cuda:12.4.1-base-ubuntu22.04 AS a\n" * 20_000,
    "chain": b"FROM python:3.12 AS s0\nRUN pip install torch==2.6.0\n"
    + b"".join(
        b"FROM s%d AS s%d\nRUN pip install torch==2.6.0\n" % (n, n + 1) for n in range(9000)
    ),
    "arguments": b"FROM a\nARG A=$B\n" + b"ENV A=$A$A$A$A$A$A$A$A\n" * 2000 + b"RUN $A\n",
    "heredocs": b"FROM a\nRUN <<A\n" + b"pip install torch <<A\n" * 20_000,
    "dashes": b"- " * 4000,
    "brackets": b"a: " + b"[" * 4000,
    "tables": b"a = " + b"[" * 4000,
    "dots": b"[" + b"a." * 4000 + b"a]\n",
    "pins": b"torch==2.6.0\n" * 60_000,
    "packages": b"torch==2.6.0\n" + b"xformers==0.0.28.post3\n" * 80_000,
    "markers": b"torch==2.6.0\n" + b"".join(b"a; os_name == 'a%d'\n" % n for n in range(80_000)),
    "later": b"FROM a\nRUN pip install torch==2.6.0\n"
    + (b"RUN pip install " + b"xformers==0.0.28.post3 " * 300 + b"\n") * 280,
    "spaces": b"torch" + b" " * 8000 + b"=" + b" " * 80,
    "binary": b"\xff\xfe" * 1000,
    "indented": b"services:\n" + b"".join(b" " * n + b"a:\n" for n in range(1, 900)),
    "pod": b"kind: Pod\nspec: " + b"{a: " * 190 + b"}" * 190,
    "long-line": b"torch==2.6.0 # " + b"x" * MB + b"\ntorchvision==0.20.0\n",
}
ALSO = {
    "requirements.txt": (
        "pins",
        "packages",
        "markers",
        "spaces",
        "blanks",
        "dollars",
        "long-line",
        "dots",
        "binary",
    ),
    "pyproject.toml": ("tables", "dots", "blanks", "brackets"),
    "uv.lock": ("tables", "dots"),
    "compose.yaml": ("dashes", "brackets", "indented", "blanks", "quotes"),
    "pod.yaml": ("pod", "dashes"),
    "a.sbatch": ("operators", "quotes", "lines", "ands", "dollars"),
}
CASES = [("Dockerfile", what) for what in LONG] + [
    (name, what) for name, many in ALSO.items() for what in many
]


MANY = {
    "uv.lock": b"version = 1\n"
    + b'[[package]]\nname="torch"\nversion="2.6.0+cpu"\nsource={registry="https://a"}\n' * 20_000,
    "Dockerfile": b"FROM python:3.12\n"
    + b"".join(b"ENV V%d=1\n" % n for n in range(45_000))
    + b"RUN pip install torch==2.6.0\n" * 19_000,
    "pod.yaml": b"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n"
    + b"  - {name: a, image: a}\n" * 6000
    + b"  volumes:\n"
    + b"  - {name: v, emptyDir: {}}\n" * 5000,
}


@pytest.mark.parametrize("name", MANY)
def test_many_lines_of_two_sorts_are_not_each_compared_with_all(name: str) -> None:
    began = time.process_time()
    with contextlib.suppress(UnreadableError):
        lint(name, MANY[name], TARGET, TABLES)
    assert time.process_time() - began < 15


def test_many_compose_files_are_not_each_compared_with_all(tmp_path: Path) -> None:
    files = [str(tmp_path / f"{n}.compose.yml") for n in range(6000)]
    began = time.process_time()
    given = compose_files(files)
    for file in files:
        assert beside(file, given, lambda _: b"").maybe
    assert time.process_time() - began < 15


@each(("name", "what"), CASES, shards=5)
def test_a_large_file_is_judged_or_refused_in_time(name: str, what: str) -> None:
    head = b"#SBATCH -n 1\n" if name.endswith("sbatch") else b""
    began = time.process_time()
    with contextlib.suppress(UnreadableError):
        lint(name, head + LONG[what], TARGET, TABLES)
    assert time.process_time() - began < 15


def test_each_compose_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is judged together with every other."""
    read: list[str] = []

    def counted(name: str, text: str) -> Project | None:
        read.append(name)
        return project_of(name, text)

    monkeypatch.setattr(lint_module, "project_of", counted)
    files = [(f"{n}.compose.yml", b"services: {a: {image: x}} # %d" % n) for n in range(9)]
    files.append(("9.compose.yml", b"services: ["))
    for file in files:
        others = tuple(other for other in files if other != file)
        with contextlib.suppress(UnreadableError):
            lint(*file, TARGET, TABLES, Beside(files=others, readable=True))
    assert sorted(read) == [name for name, _ in files]


_PARTS = b"a." * 3900


@each("before", [b"", b"a = {", b'"a=b".', b"["])
def test_keys_of_thousands_of_parts_are_refused(before: bytes) -> None:
    with pytest.raises(UnreadableError, match="nested too deeply"):
        lint("pyproject.toml", before + _PARTS + b"b = 1\n", TARGET, TABLES)


_RUN = b"RUN " + b"a;" * 400 + b"\n"
_COPIES = b"".join(b"FROM s%d AS s%d\n" % (n, n + 1) for n in range(60))


@pytest.mark.parametrize("stages", [_RUN * 51, _RUN + _COPIES])
def test_commands_of_all_stages_are_counted(stages: bytes) -> None:
    with pytest.raises(UnreadableError, match="more than 20000 commands"):
        lint("Dockerfile", b"FROM a AS s0\n" + stages, TARGET, TABLES)


def test_aliases_are_followed_one_by_one() -> None:
    """Of a sequence that holds itself many times, each level would be a list of all of them."""
    text = "a: &a [" + ",\n".join(["*a"] * 20_000) + "]\n"
    document = yaml.compose(text, Loader=yaml.SafeLoader)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError, match="nested too deeply"):
            _refuse_bombs(document)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_aliases_that_multiply_are_refused() -> None:
    bomb = "kind: Pod\na: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for inner, outer in zip("abcdefghi", "bcdefghij", strict=True):
        bomb += f"{outer}: &{outer} [{', '.join([f'*{inner}'] * 10)}]\n"
    with pytest.raises(UnreadableError, match="nested too deeply"):
        lint("pod.yaml", bomb.encode(), TARGET, TABLES)


def test_an_alias_of_itself_is_refused() -> None:
    with pytest.raises(UnreadableError, match="nested too deeply"):
        lint("pod.yaml", b"kind: Pod\na: &a [*a]\n", TARGET, TABLES)


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system [ls]", "!x {}", "!!binary x"])
def test_tags_build_no_objects(tag: str) -> None:
    assert lint("pod.yaml", f"kind: Pod\na: {tag}\n".encode(), TARGET, TABLES).complaints == ()


@each(
    ("data", "words"),
    [
        (b"torch\0", "not a text file"),
        (b"\xff\xfet", "not encoded in UTF-8"),
        (b"x" * (limits.LARGEST + 1), "larger than 2 MiB"),
        (b"\n" * (limits.MOST_LINES + 1), "more than 100000 lines"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(UnreadableError, match=words):
        lint("requirements.txt", data, TARGET, TABLES)


@each("name", ["pyproject.toml", "uv.lock", "pixi.toml"])
@each(
    "text",
    [
        "project = 1\ntool = []\npackage = {a = 1}\ndependencies = [1]",
        "[project]\ndependencies = [1, [2]]\nrequires-python = 3\n[tool]\nuv = 1\npoetry = []",
        "[tool.uv.sources]\ntorch = [1, {index = 2}]\n[[tool.uv.index]]\nurl = 1\nname = []",
        "[tool.poetry.dependencies]\ntorch = [1]\npython = {version = 2}\n",
        "[[package]]\nname = 1\nversion = {}\nsource = []\n[[package]]\nname = 'torch'\nsource = 1",
        "[dependencies]\npytorch = 1\npython = [2]\n[pypi-dependencies]\ntorch = 1\n",
        "a = [",
    ],
)
def test_values_of_other_types_break_nothing(name: str, text: str) -> None:
    try:
        assert lint(name, text.encode(), TARGET, TABLES).complaints == ()
    except UnreadableError as refused:
        assert refused.args[0] == "it is not TOML"  # noqa: PT017


@each(
    "text",
    [
        "services: 1",
        "services:\n  a: 1\n  b: [x]\n  ? [c]\n  : d\n",
        "services:\n  a: {image: [x], deploy: 1, environment: {a: }, volumes: {b: c}, gpus: [1]}\n",
        "kind: Pod\nspec: []",
        "kind: Job\nspec: {template: {spec: {containers: {a: b}, volumes: 1}}}",
        "kind: Pod\nspec: {containers: [1, {image: {}, resources: 1, env: 1, name: []}]}",
        "dependencies:\n  a: b\n",
        "dependencies:\n- 1\n- pip: 2\n- pip: [[x], {a: b}]\n",
        "kind: Pod\n--- \n---\n...\n--- 1\n",
    ],
)
def test_documents_of_other_forms_break_nothing(text: str) -> None:
    for name in ("compose.yaml", "environment.yml"):
        assert lint(name, text.encode(), TARGET, TABLES).complaints == ()


@each("name", ["::stop-commands::x", "  ::error file=a::b", "a##[stop-commands]x", "\n::error::x"])
def test_a_name_of_a_file_is_no_command_of_a_runner(name: str) -> None:
    """GitHub executes lines of a log that begin with ``::``, or have ``##[`` anywhere."""
    from gpucheck.describe.lint_text import LintedFile, reasons, terminal  # noqa: PLC0415

    data = b"services:\n  a: {image: nvidia/cuda:12.4.1-base-ubuntu22.04}\n"
    done = lint("compose.yaml", data, TARGET, TABLES)
    file = LintedFile(file=name, complaints=done.complaints, unjudged=("x",))
    lines = [*terminal([file]).splitlines(), *reasons(file)]
    assert len(lines) > 1
    assert not [line for line in lines if line.lstrip().startswith("::") or "##[" in line]


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    from gpucheck.describe.lint_text import LintedFile, github, terminal  # noqa: PLC0415

    data = b'services:\n  "a\\x1b[31m::error\\n": {image: nvidia/cuda:12.4.1-base-ubuntu22.04}\n'
    done = lint("compose.yaml", data, TARGET, TABLES)
    assert done.complaints
    file = LintedFile(file="a\x1b\n::error::x", kind=done.kind, complaints=done.complaints)
    for text in (terminal([file]), github([file])):
        assert "\x1b" not in text
        assert not any(line.startswith("::error::") for line in text.splitlines())


@pytest.mark.parametrize("marker", ["platform_machine ~= 'x86'", "os_name ~= 'posix'"])
def test_a_marker_that_compares_what_has_no_order_may_not_hold(marker: str) -> None:
    text = f"torch==2.6.0 ; {marker}\ntorchvision==0.20.0\n"
    assert not lint("requirements.txt", text.encode(), TARGET, TABLES).complaints


def test_a_number_that_python_does_not_convert_is_no_version() -> None:
    assert normal_version("9" * 4999) == ""
