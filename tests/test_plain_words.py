"""Phrases that needed a second reading stand nowhere any more, and each has a plain replacement.

The words themselves are in docs/glossary.md. Messages and recordings quote programs and people, so
TOML files and the test machines are not searched.
"""

import re
from pathlib import Path

from each import each

ROOT = Path(__file__).parent.parent

PHRASES = {
    r"told from its like": "distinguished from others of its kind",
    r"\bis not told from\b": "is not recognised",
    r"\b(?:its|of her) kin\b": "its relatives; its derivatives",
    r"\bthe patients?\b": "torch; the target",
    r"\bfor want of\b": "because ... is missing",
    r"\bIs this so: [^?]*\?.{0,20}\bIs this so:": "the question, once",
    r"\bbe had\b": "be available; you get; you have",
    r"\b(?:called|calls?|named|looks?) ill\b": "a false alarm; called broken; looks broken",
    r"\bsound (?:boards?|machines?|gpus?)\b": "a healthy board, machine or GPU",
    r"\b(?:turns?|stays?|is|are|was|were) (?:red|green)\b": "fails, passes",
    r"\bheld against\b": "compared with; judged by",
    r"\bforeign actions?\b": "a third-party action",
    r"\bwhose concern\b": "who has to act; the owner",
    r"\bby heart\b": "known forms",
    r"\bline is drawn\b": "the threshold",
    r"\bin its hands\b": "gets",
    r"\bhears (?:what|of|in words|every|the)\b": "is told; collects; reads",
    r"\btold (?:with its reason|in a notice|in words alone)\b": "reported; listed; described",
    r"\bwest wing\b|\beast wing\b|\bwings and a hall\b": "the part that reads texts",
    r"\bneeds? it not\b": "does not need it",
    r"\bof no more use\b": "is not used again",
    r"\band why so (?:far|many)\b": "and the reason",
    r"\bspeaks? (?:CUDA|only CUDA|an older CUDA)\b": "supports CUDA up to",
    r"\bspeaks? against\b": "shows a problem with; rules out",
    r"\bthis rests on\b": "this is based on",
    r"\bwhich \w+ (?:build )?has the \w+ \w+\?": "which ... does the ... have?",
    r"\bchecks? lacks? a fact\b": "could not be decided because a fact is missing",
    r"\bis gone from here\b": "has been removed",
    r"\bnothing is known of\b": "gpucheck recognises nothing in; no ... is known",
    r"\bof which there is no\b": "which is not on this machine",
    r"\bwas said to use\b": "you said that ... uses",
    r"\bstands? there twice\b": "appears twice",
    r"\b(?:which fits|yours fits)\b[.:]": "is right for; your build fits",
    r"\band not without[.:]": "only with",
    r"\btakes? \S+ out of (?:LD_|the loader)": "remove ... from",
    r"\blift the (?:\w+ )?limit\b": "raise the limit",
    r"\b(?:it|file|input) is no (?:JSON|text|number|name|port|regular|baseline|snapshot)\b": (
        "is not"
    ),
    r"(?<=--)[\w-]+ wants\b": "expects",
    r"\bsees nothing of (?:it|them)\b": "cannot use; cannot see",
    r"\bcontradict one another\b": "contradict each other",
    r"\bechoe?s? of \{?cause": "explained by",
    r"\bthe (?:first|last) to know\b": "the first, the last to support",
    r"\bcannot be told\b": "gpucheck cannot tell; is unclear",
    r"\bfor sure\b": "certain; with certainty",
    r"\bmeasured to the end\b": "the measurement was not finished",
    r"\b(?:is|are) no records?\b": "is not a record",
    r"\bis none of \{": "is not one of",
    r"\bis no regular file\b": "is not a regular file",
    r"\bhas nothing like \{": "does not take",
    r"\binto which nobody\b": "and nothing was written to it",
    r"\bis another than\b": "differs from",
    r"\b(?:said|sent|found) that of another\b": "the data of another",
    r"\bis broken, or the link\b": "it or the link is broken",
    r"\b(?:a|the) pass refutes\b": "if it passes, ...",
}
"""What is refused, as a pattern, and the plain words for it."""
_ALTERNATIVES = "|".join(
    re.sub(r"(?<!\\)[A-Z]", lambda at: at[0].lower(), phrase.removeprefix(r"\b"))
    for phrase in PHRASES
)
_ANY = re.compile(rf"\b(?:{_ALTERNATIVES})")
"""All of them in lower case behind one boundary of words: ten times as fast as without either."""
_BROKEN = re.compile(r'"\s*\n\s*[frb]?"|\n[ \t]*(?:#:? ?|- )?')
"""Where a sentence goes on in another line: of a string in parts, a comment, a paragraph."""
_SUFFIXES = (".py", ".md", ".yml", ".yaml", ".sh", ".sbatch")


def _files() -> list[Path]:
    folders = [file for name in ("src", "docs") for file in (ROOT / name).rglob("*")]
    pages = [file for file in ROOT.glob("*.md") if file.name.isascii()]
    return [file for file in (*folders, *pages) if file.suffix in _SUFFIXES]


def found(text: str) -> list[str]:
    """Return the refused phrases of a text, wherever its lines are broken."""
    whole = _BROKEN.sub(lambda at: "" if at[0].startswith('"') else " ", text)
    whole = re.sub(" {2,}", " ", whole)
    return [whole[match.start() : match.end()] for match in _ANY.finditer(whole.lower())]


def test_no_page_and_no_module_has_a_phrase_that_was_replaced() -> None:
    files = _files()
    assert len(files) > 500
    bad = {
        file.relative_to(ROOT).as_posix(): phrases
        for file in files
        if (phrases := found(file.read_text(encoding="utf-8")))
    }
    assert bad == {}, [f"{phrase}: {plain}" for phrase, plain in PHRASES.items()]


@each(
    "text",
    [
        "it cannot be told from its like",
        "It stopped for want\n    of memory.",
        "# The patient\n# imports torch.",
        '    "it may not "\n    "be had here"\n',
        'f"a "\n    f"sound machine"',
        "Is this so: a? Is this so: b?",
    ],
)
def test_a_phrase_is_found_wherever_its_line_is_broken(text: str) -> None:
    assert len(found(text)) == 1


def test_plain_words_are_not_refused() -> None:
    assert found("The patient reader has had it; the redacted report is redundant. Be hadoop.") == [
        "The patient"
    ]
    assert found("Reports say which facts are missing. He behaved.") == []
