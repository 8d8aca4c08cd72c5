#!/usr/bin/env python3
"""Makes ``docs/images/check.svg`` and the later ones of ``docs/images/screens``: what is printed.

terminal_picture.py           write the pictures again, after the output or the tables changed
terminal_picture.py --check   say whether they are up to date (exit status 1 if not)
"""

import argparse
import re
import sys
from html import escape
from pathlib import Path

from gpucheck.doctor.collector import Collector
from gpucheck.engine import judge_machine
from gpucheck.facts.request import Request
from gpucheck.machine.candidates import TargetWish
from gpucheck.output import terminal
from gpucheck.tables import Tables

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))

import machine_files  # noqa: E402  # the test machines are read by the tests

MACHINE = "rtx5090-cu124"
COMMAND = "gpucheck --machine rtx5090.zip"
PICTURE = ROOT / "docs" / "images" / "check.svg"
WIDTH = 88
SCREENS = ROOT / "docs" / "images" / "screens"
SCREEN_WIDTH = 80
_AFTER = "-after.svg"
_FOOTER = slice(-3, -1)
"""The lines before the last one: they have the time of the run, and what triage reads."""
_CHAR, _LINE, _MARGIN, _SIZE = 7.8, 18, 16, 13
_INK, _PAPER = "#d8dee9", "#1e222a"
_COLORS = {
    "": _INK, "1": "#ffffff", "2": "#8a93a3", "1;31": "#ff7b72", "1;33": "#e3b341",
    "1;32": "#7ee787", "1;36": "#79c0ff",
}  # fmt: skip
"""What a terminal makes of each style of ``output.layout``."""
_STYLED = re.compile(r"\x1b\[(?P<code>[0-9;]+)m(?P<text>.*?)\x1b\[0m")


def pictures() -> dict[Path, str]:
    """Return every picture as it has to be, by its file."""
    screens = sorted(SCREENS.glob(f"*{_AFTER}"))
    return {
        PICTURE: picture(printed()),
        **{
            file: picture(printed(file.name.removesuffix(_AFTER), SCREEN_WIDTH), "gpucheck")
            for file in screens
        },
    }


def printed(machine: str = MACHINE, width: int = WIDTH) -> list[str]:
    """Return what gpucheck prints on a terminal for a recorded machine, without the footer."""
    tables = Tables()
    host, wish = machine_files.host(machine), TargetWish(python=None)
    snapshot = Collector(host, tables, wish=wish, request=Request()).collect().snapshot
    text = terminal.render(judge_machine(snapshot, tables), color=True, width=width)
    lines = text.rstrip("\n").split("\n")
    del lines[_FOOTER]
    return lines


def picture(lines: list[str], command: str = COMMAND) -> str:
    """Return lines with SGR codes as a picture in SVG; the text stays text."""
    shown = [f"$ {command}", "", *lines]
    while not shown[-1]:
        shown.pop()
    columns = max(len(_STYLED.sub(r"\g<text>", line)) for line in shown)
    width = round(columns * _CHAR + 2 * _MARGIN)
    height = len(shown) * _LINE + 2 * _MARGIN
    rows = "\n".join(filter(None, (_row(at, line) for at, line in enumerate(shown))))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-size="{_SIZE}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace">'
        f"\n<title>What gpucheck prints for a recorded machine</title>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="{_PAPER}"/>\n{rows}\n</svg>\n'
    )


def _row(at: int, line: str) -> str:
    """Return one line; each piece has its own place, whatever the font of the reader is."""
    pieces, column = [], 0
    for style, text in _pieces(line):
        bare = text.lstrip(" ")
        column += len(text) - len(bare)
        if bare:
            pieces.append(
                f'<text x="{_MARGIN + column * _CHAR:.1f}" y="{_MARGIN + at * _LINE + _SIZE}" '
                f'textLength="{len(bare.rstrip()) * _CHAR:.1f}" lengthAdjust="spacingAndGlyphs" '
                f'xml:space="preserve" fill="{_COLORS[style]}">{escape(bare.rstrip())}</text>'
            )
        column += len(bare)
    return "".join(pieces)


def _pieces(line: str) -> list[tuple[str, str]]:
    """Return the pieces of a line with the SGR code of each."""
    found, end = [], 0
    for styled in _STYLED.finditer(line):
        found += [("", line[end : styled.start()]), (styled["code"], styled["text"])]
        end = styled.end()
    return [*found, ("", line[end:])]


def main() -> int:
    """Write the pictures, or compare them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    old = [
        (file, made)
        for file, made in pictures().items()
        if not file.is_file() or file.read_text(encoding="utf-8") != made
    ]
    for file, made in old:
        if check:
            print(f"{file} is out of date: run tools/terminal_picture.py", file=sys.stderr)
        else:
            file.write_text(made, encoding="utf-8", newline="\n")
    return 1 if check and old else 0


if __name__ == "__main__":
    sys.exit(main())
