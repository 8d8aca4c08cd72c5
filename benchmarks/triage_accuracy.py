"""How often ``gpucheck triage`` names the right cause: DIR holds texts/ID.txt and labels.jsonl.

A line of labels.jsonl is an object with "id", "expect" (a slug, or "healthy") and "also" (slugs
that are as right). Top-1: the first root cause is right, and a healthy ticket is called healthy.
Lenient: "unknown" is right for "healthy", too, because no cause is named.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from gpucheck.findings import all_rules
from gpucheck.tables import Tables
from gpucheck.ticket.judge import triage

_HEALTHY = "healthy"
_NOTHING = "(unknown)"
_NO_FAULTS = frozenset([_HEALTHY, "application-bug", "not-gpu-related"])


def _said(text: bytes, tables: Tables) -> list[str]:
    report = triage(text, tables)
    if report.root_causes:
        return list(report.root_causes)
    return [_HEALTHY if report.verdict == _HEALTHY else _NOTHING]


def _is_right(label: dict[str, Any], said: list[str]) -> bool:
    return said[0] in (label["expect"], *label["also"])


def _family(slug: str) -> str:
    rule = all_rules().get(slug)
    return rule.family if rule is not None else slug


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} = {part / whole:.1%}" if whole else "none"


def main() -> None:
    """Print the shares, and every miss with what was said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--misses", action="store_true", help="list what was missed")
    asked = parser.parse_args()
    lines = (asked.folder / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    labels = [json.loads(line) for line in lines if line.strip()]
    tables = Tables()
    right: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    top3 = unknown = alarms = sound = 0
    misses = []
    for label in labels:
        said = _said((asked.folder / "texts" / f"{label['id']}.txt").read_bytes(), tables)
        family = _family(label["expect"])
        whole[family] += 1
        right[family] += _is_right(label, said)
        top3 += _is_right(label, said) or bool({label["expect"], *label["also"]} & set(said[:3]))
        unknown += said == [_NOTHING]
        if {label["expect"], *label["also"]} <= _NO_FAULTS:
            sound += 1
            alarms += said[0] not in (*_NO_FAULTS, _NOTHING)
        if not _is_right(label, said):
            misses.append((label["expect"], label["id"], ", ".join(said[:3])))
    total = len(labels)
    print(f"top-1            {_share(right.total(), total)}")
    lenient = sum(expect == _HEALTHY and said == _NOTHING for expect, _name, said in misses)
    print(f"lenient          {_share(right.total() + lenient, total)}")
    print(f"top-3            {_share(top3, total)}")
    print(f"false alarms     {_share(alarms, sound)} of those without a fault of the environment")
    print(f"unknown          {_share(unknown, total)}")
    for family, count in sorted(whole.items()):
        print(f"  {family:14} {_share(right[family], count)}")
    for expect, name, said_instead in sorted(misses) if asked.misses else ():
        print(f"{name}: {expect}, said {said_instead}")


if __name__ == "__main__":
    main()
