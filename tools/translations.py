# ruff: noqa: INP001
"""Makes, fills and checks the catalogues of translations in ``src/gpucheck/language/``.

Every sentence that a user reads is a template in the code: the first argument of ``say``, the
second and third of ``say_many``, ``says`` and ``text`` in the messages of a finding, a paragraph of
a finding's page or of a command's help, the comment of an example, what a self-test is about. The
templates of one package are in one ``.po`` file, those of a module of findings in a file of its
own. Phrases of the compatibility tables that are parameters of such sentences are in
``compat_tables.po``.

    translations.py update           bring the files up to date with the code
    translations.py missing [PART]   print what has no translation, as JSON
    translations.py fill FILE        take translations from a JSON object of template to translation
    translations.py check            say what is missing, fuzzy, left over or malformed
    translations.py compile          make the catalogue that a source tree uses
"""

import argparse
import ast
import datetime as dt
import functools
import json
import runpy
import string
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/gpucheck"
FOLDER = SOURCE / "language"
TABLES = ROOT / "compat_tables"
LANGUAGES = ("zh",)
_KEYWORDS = {"say": (1,), "say_many": (2, 3)}
_UNDATED = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
_SELFTESTS = SOURCE / "worker/selftests"

Key = str | tuple[str, str]
TableRow = dict[str, object]


@dataclass(frozen=True)
class Phrases:
    """A field of a table whose words stand in sentences, and in which rows they do."""

    table: str
    field: str
    shown: Callable[[TableRow], bool] = lambda _row: True

    def found(self) -> Iterator[str]:
        """Yield the phrases."""
        file = TABLES / f"{self.table}.json"
        rows: list[TableRow] = json.loads(file.read_text(encoding="utf-8"))["rows"]
        for row in rows:
            if row.get(self.field) and self.shown(row):
                yield str(row[self.field])


def _is_failure(row: TableRow) -> bool:
    return row.get("code") != 0


# Plain text that is equal to one of these phrases is translated as well. So rows that no sentence
# mentions are left out: their phrases ("ok", "out of memory") may be the words of other programs.
IN_SENTENCES = (
    Phrases("cuda_errors", "meaning", _is_failure),
    Phrases("library_errors", "meaning", _is_failure),
    Phrases("nvml_errors", "meaning", lambda row: bool(row.get("slugs"))),
    Phrases("xid", "short_name"),
    Phrases("nccl", "description"),
    Phrases("torch_builds", "note", lambda row: row.get("confirmed") is False),
)


_PARAGRAPHS = runpy.run_path(str(FOLDER / "paragraphs.py"))  # gpucheck may not be installed yet
paragraphs: Callable[[str], list[str]] = _PARAGRAPHS["paragraphs"]
comment_of: Callable[[str], str] = _PARAGRAPHS["comment_of"]


def found_in(file: Path) -> tuple[Key, ...]:
    """Return the templates of a module or of a finding's messages."""
    return _found_in(file, file.read_text(encoding="utf-8"))


@functools.cache  # the tests ask for all templates several times
def _found_in(file: Path, text: str) -> tuple[Key, ...]:
    if file.suffix == ".toml":
        return tuple(_of_messages(text))
    tree = ast.parse(text)
    nodes = [*ast.walk(tree)]
    return (*_about(file, tree), *_templates(nodes), *_pages(file, tree, nodes))


def _templates(nodes: Iterable[ast.AST]) -> Iterator[Key]:
    """Yield the templates that the code of a module says, also within an f-string."""
    for node in nodes:
        if isinstance(node, ast.Call) and (places := _KEYWORDS.get(getattr(node.func, "id", ""))):
            words = [
                ast.literal_eval(arg) for arg in _literals(node.args[at - 1 :] for at in places)
            ]
            if len(words) == len(places):
                yield words[0] if len(words) == 1 else (words[0], words[1])


def _literals(places: Iterable[list[ast.expr]]) -> Iterator[ast.Constant]:
    """Yield what stands first at each place, if it is a text."""
    for args in places:
        if args and isinstance(args[0], ast.Constant) and isinstance(args[0].value, str):
            yield args[0]


def _of_messages(text: str) -> Iterator[str]:
    written = tomllib.loads(text)
    for message in written.get("message", ()):
        yield message["says"]
        yield from _of_fixes(message.get("fix", ()))
    for kind in ("fix", "named_fix"):
        yield from _of_fixes(written.get(kind, ()))


def _of_fixes(written: Iterable[dict[str, Any]]) -> Iterator[str]:
    for fix in written:
        yield fix["text"]
        if "text" in fix.get("windows", {}):
            yield fix["windows"]["text"]


def _pages(file: Path, tree: ast.Module, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the pages of findings, and the docstrings that are shown as help."""
    if file.parent == SOURCE / "findings" and file.stem != "__init__":
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Rule":
                for given in node.keywords:
                    if given.arg == "page":
                        yield from paragraphs(ast.literal_eval(given.value))
    else:
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and any(map(_is_command, node.decorator_list)):
                yield from paragraphs(ast.get_docstring(node) or "")
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "examples":
                yield from _comments(node)


def _about(file: Path, tree: ast.Module) -> Iterator[str]:
    """Yield what a self-test is about."""
    for node in tree.body if file.parent == _SELFTESTS else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ABOUT":
            yield ast.literal_eval(node.value)


def _comments(call: ast.Call) -> Iterator[str]:
    """Yield the comments in the examples of a command's help."""
    for line in call.args:
        if isinstance(line, ast.Constant) and (comment := comment_of(str(line.value))):
            yield comment


def _is_command(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr in ("command", "group")


def part_of(file: Path) -> str:
    """Return the name of the catalogue file that a module belongs to, without its suffix."""
    if file.parent == SOURCE / "findings":
        return f"findings/{file.stem}" if file.stem != "__init__" else "findings/all"
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def templates() -> dict[str, list[Key]]:
    """Return the templates of all parts, each once."""
    found: dict[str, dict[Key, None]] = defaultdict(dict)
    for file in sorted((*SOURCE.rglob("*.py"), *SOURCE.rglob("*.toml"))):
        found[part_of(file)].update(dict.fromkeys(found_in(file)))
    for phrases in IN_SENTENCES:
        found[TABLES.name].update(dict.fromkeys(phrases.found()))
    return {part: list(keys) for part, keys in found.items() if keys}


def _path(language: str, part: str) -> Path:
    return FOLDER / language / f"{part}.po"


def read(file: Path, language: str) -> Catalog:
    """Return the catalogue in a file; an empty one if there is no such file."""
    if not file.exists():
        return Catalog(locale=language)
    with file.open("rb") as source:
        return read_po(source, locale=language)


def write(file: Path, catalog: Catalog) -> None:
    """Write a catalogue, sorted, without dates and line numbers: branches merge cleanly."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as out:
        write_po(
            out, catalog, width=100, no_location=True, omit_header=True, sort_output=True,
            ignore_obsolete=True,
        )  # fmt: skip


def update() -> None:
    """Bring every file up to date: new templates are added, those that are gone are dropped.

    A template that moved from one package to another keeps its translation.
    """
    found = templates()
    for language in LANGUAGES:
        known = {
            _key(message): message.string
            for _file, message in messages(language)
            if any(_forms(message)) and not message.fuzzy
        }
        for part, keys in found.items():
            template = Catalog()
            for key in keys:
                template.add(key)
            catalog = read(_path(language, part), language)
            catalog.update(template)
            for message in catalog:
                if message.id and _key(message) in known:
                    message.string = known[_key(message)]
                    message.flags.discard("fuzzy")
            write(_path(language, part), catalog)
        for file in sorted((FOLDER / language).rglob("*.po")):
            if file.relative_to(FOLDER / language).with_suffix("").as_posix() not in found:
                file.unlink()


def files(language: str) -> list[Path]:
    """Return the files of a language."""
    return sorted((FOLDER / language).rglob("*.po"))


def messages(language: str) -> Iterator[tuple[Path, Message]]:
    """Yield every message of a language with its file."""
    for file in files(language):
        for message in read(file, language):
            if message.id:
                yield file, message


def missing(part: str = "") -> list[str]:
    """Return the templates of a part, or of all, that have no translation."""
    return sorted(
        {
            _first(message.id)
            for language in LANGUAGES
            for file, message in messages(language)
            if (not any(_forms(message)) or message.fuzzy) and part in str(file)
        }
    )


def fill(given: dict[str, str]) -> int:
    """Put translations into the files and return how many there were places for."""
    count = 0
    for language in LANGUAGES:
        for file in files(language):
            catalog = read(file, language)
            taken = [message for message in catalog if message.id and _first(message.id) in given]
            for message in taken:
                words = given[_first(message.id)]
                message.string = words if isinstance(message.id, str) else (words,)
                message.flags.discard("fuzzy")
            if taken:
                write(file, catalog)
            count += len(taken)
    return count


def faults() -> list[str]:
    """Return what is wrong with the catalogues, a sentence each."""
    found = templates()
    wrong = []
    for language in LANGUAGES:
        translated: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        there: dict[str, set[Key]] = defaultdict(set)
        for file, message in messages(language):
            part = file.relative_to(FOLDER / language).with_suffix("").as_posix()
            there[part].add(_key(message))
            translated[_first(message.id)].add(_forms(message))
            wrong += [f"{part}: {why}: {_first(message.id)!r}" for why in _wrong_with(message)]
        for part in sorted(found.keys() | there.keys()):
            gone, new = (
                there[part] - set(found.get(part, ())),
                set(found.get(part, ())) - there[part],
            )
            wrong += [f"{part}: not in the code: {key!r}" for key in sorted(map(str, gone))]
            wrong += [f"{part}: not in the catalogue: {key!r}" for key in sorted(map(str, new))]
        wrong += [
            f"{language}: two translations of {key!r}"
            for key, forms in translated.items()
            if len(forms) > 1
        ]
    return wrong


def _wrong_with(message: Message) -> Iterator[str]:
    forms = _forms(message)
    if not all(forms):
        yield "no translation"
        return
    if message.fuzzy:
        yield "fuzzy"
    key = _key(message)
    wanted = _fields(key if isinstance(key, str) else key[-1])
    for form in forms:
        try:
            fields = _fields(form) if wanted else frozenset[str]()
        except ValueError as error:
            yield f"not a template ({error})"
            continue
        if fields != wanted:
            yield f"other parameters {sorted(fields ^ wanted)}"


def _fields(template: str) -> frozenset[str]:
    """Return the names of the parameters of a template; text with other braces has none."""
    try:
        parsed = [name for _text, name, _spec, _how in string.Formatter().parse(template) if name]
    except ValueError:
        return frozenset()
    return frozenset(parsed)


def _key(message: Message) -> Key:
    return message.id if isinstance(message.id, str) else (message.id[0], message.id[1])


def _first(key: str | Iterable[str]) -> str:
    return key if isinstance(key, str) else next(iter(key))


def _forms(message: Message) -> tuple[str, ...]:
    translated = message.string
    return (translated,) if isinstance(translated, str) else tuple(translated or ())


def compiled(language: str) -> Catalog:
    """Return one catalogue of all parts of a language."""
    whole = Catalog(locale=language, creation_date=_UNDATED, revision_date=_UNDATED)
    for _file, message in messages(language):
        if all(_forms(message)) and not message.fuzzy:
            whole.add(message.id, message.string)
    return whole


def compile_all(folder: Path = FOLDER) -> None:
    """Write the catalogue of each language, as programs read it."""
    for language in LANGUAGES:
        with (folder / f"{language}.mo").open("wb") as out:
            write_mo(out, compiled(language))


def is_stale() -> bool:
    """Whether a catalogue of the source tree is older than one of its files, or is not there."""
    for language in LANGUAGES:
        made = FOLDER / f"{language}.mo"
        if not made.exists() or any(
            file.stat().st_mtime >= made.stat().st_mtime for file in files(language)
        ):
            return True
    return False


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=["update", "missing", "fill", "check", "compile"])
    parser.add_argument("name", nargs="?", default="")
    asked = parser.parse_args()
    if asked.task == "update":
        update()
    elif asked.task == "missing":
        print(json.dumps(dict.fromkeys(missing(asked.name), ""), ensure_ascii=False, indent=1))
    elif asked.task == "fill":
        given = json.loads(Path(asked.name).read_text(encoding="utf-8"))
        print(f"{fill({key: words for key, words in given.items() if words})} filled in")
    elif asked.task == "check":
        wrong = faults()
        print("\n".join(wrong) or "every sentence has its translation")
        sys.exit(bool(wrong))
    compile_all()


if __name__ == "__main__":
    main()
