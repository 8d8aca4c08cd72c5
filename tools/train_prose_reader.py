#!/usr/bin/env python3
"""Train and measure the second reader of triage, ``gpucheck.ticket.prose_reader``.

    python tools/train_prose_reader.py add SET LABELS TEXTS  # hash the words of labelled tickets
    python tools/train_prose_reader.py measure               # each set, by what the others teach
    python tools/train_prose_reader.py train                 # write the model into the package

It needs scikit-learn (``pip install -e '.[reader]'``). LABELS has a line of JSON for each ticket:
``id``, ``expect``, ``also``, ``lang``, ``source``; those with ``thin``, ``weak`` or ``doubt`` are
left out. TEXTS has a file ``ID.txt`` for each. Of a text only the hashed counts are kept, in
``tools/prose_reader/tickets.npz``: its words cannot be put together again. The model card is
docs/triage/prose-reader.md.
"""

import argparse
import itertools
import json
import math
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpucheck.ticket.prose_reader import PLACES, Model, counted, weighed

if TYPE_CHECKING:  # imported late: --help does not need them
    from scipy.sparse import csr_matrix
    from sklearn.svm import LinearSVC

_ROOT = Path(__file__).parents[1]
TICKETS = _ROOT / "tools" / "prose_reader" / "tickets.npz"
MODEL = _ROOT / "src" / "gpucheck" / "ticket" / "prose_reader.bin"
_SEED = 20261127
_COST = 2.0
"""The C of LinearSVC: from 1 to 10 it hardly matters."""
_ALSO = 0.3
"""How much a ticket teaches about each further cause that its label accepts."""
_SHARPNESS = 6.5
"""What scores are multiplied by before they become shares. It fits the labelled tickets that the
rules leave open (docs/evidence.md); to all tickets 8 fits best, and promises those too much."""
_ONE_FAULT_LESS = ("healthy", "application-bug")
"""A library's own exception in a good environment: both labels are right."""
_UNLABELLED = ("unknown-cause", "unknown")
_UNSURE = ("thin", "weak", "doubt")
"""What those who labelled wrote beside a label that the text can hardly show."""


class Tickets:
    """The hashed tickets: a row of counts for each, and what is known of it."""

    def __init__(self, rows: list[dict[int, int]], about: list[dict[str, Any]]) -> None:
        self.rows, self.about = rows, about

    @classmethod
    def read(cls) -> "Tickets":
        """Read the file of the repository; no tickets if there is none."""
        if not TICKETS.exists():
            return cls([], [])
        with np.load(TICKETS) as saved:
            starts, places, counts = (
                saved[name].tolist() for name in ("starts", "places", "counts")
            )
            about = json.loads(bytes(saved["about"]))
        rows = [
            dict(zip(places[start:end], counts[start:end], strict=True))
            for start, end in itertools.pairwise(starts)
        ]
        return cls(rows, about)

    def write(self) -> None:
        """Write the file of the repository."""
        TICKETS.parent.mkdir(exist_ok=True)
        np.savez_compressed(
            TICKETS,
            starts=np.cumsum([0, *map(len, self.rows)], dtype=np.int32),
            places=np.array([place for row in self.rows for place in row], dtype=np.uint16),
            counts=np.array(
                [min(n, 255) for row in self.rows for n in row.values()], dtype=np.uint8
            ),
            about=np.frombuffer(json.dumps(self.about).encode(), dtype=np.uint8),
        )

    def add(self, name: str, labels: Path, texts: Path) -> int:
        """Add the tickets of a set whose source is not there yet; return how many."""
        known = {about["source"] for about in self.about}
        before = len(self.rows)
        for line in labels.read_text().splitlines():
            label = json.loads(line)
            text = texts / f"{label['id']}.txt"
            unsure = label["expect"] in _UNLABELLED or any(map(label.get, _UNSURE))
            if unsure or label["source"] in known or not text.exists():
                continue
            known.add(label["source"])
            row = counted(text.read_text(errors="replace"))
            self.rows.append(dict(sorted(row.items())))
            kept = {key: label.get(key) for key in ("expect", "also", "lang", "source")}
            self.about.append({"set": name, **kept})
        return len(self.rows) - before

    def matrix(self) -> "csr_matrix":
        """Return the counts as the model weighs them, each row of length 1."""
        from scipy.sparse import csr_matrix  # noqa: PLC0415

        weights = [[weighed(count) for count in row.values()] for row in self.rows]
        lengths = [math.sqrt(sum(weight * weight for weight in row)) or 1.0 for row in weights]
        return csr_matrix(
            (
                [w / length for row, length in zip(weights, lengths, strict=True) for w in row],
                [place for row in self.rows for place in row],
                np.cumsum([0, *map(len, self.rows)]),
            ),
            shape=(len(self.rows), PLACES),
        )

    def labels(self) -> NDArray[np.str_]:
        """Return the cause of each ticket."""
        return np.array([about["expect"] for about in self.about])

    def is_right(self, at: int, cause: str) -> bool:
        """Whether a cause is right for a ticket."""
        right = {self.about[at]["expect"], *(self.about[at]["also"] or ())}
        return cause in right or (
            cause in _ONE_FAULT_LESS and not right.isdisjoint(_ONE_FAULT_LESS)
        )


def fitted(tickets: Tickets, but: str = "") -> "LinearSVC":
    """Return the model that all tickets teach but those of one set."""
    from sklearn.svm import LinearSVC  # noqa: PLC0415

    causes = set(tickets.labels())
    taught = [
        (at, cause, _ALSO if further else 1.0)
        for at, about in enumerate(tickets.about)
        if about["set"] != but
        for further, cause in enumerate((about["expect"], *(about["also"] or ())))
        if cause in causes
    ]
    rows, labels, weights = zip(*taught, strict=True)
    model = LinearSVC(C=_COST, random_state=_SEED)
    return model.fit(tickets.matrix()[list(rows)], labels, sample_weight=weights)


def crossed(tickets: Tickets) -> list[tuple[int, list[str], NDArray[np.float64]]]:
    """Read each set with what the other sets teach: ticket, causes, scores.

    Tickets of one set share searches and projects: by chance, a fifth would be read too well.
    """
    matrix = tickets.matrix()
    sets = np.array([about["set"] for about in tickets.about])
    found = []
    for name in dict.fromkeys(sets):
        model = fitted(tickets, but=name)
        scores = model.decision_function(matrix[sets == name])
        found += [
            (int(at), list(model.classes_), score)
            for at, score in zip(np.flatnonzero(sets == name), scores, strict=True)
        ]
    return found


def shares(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores as shares that add up to 1."""
    raised = np.exp(_SHARPNESS * (scores - scores.max()))
    return np.asarray(raised / raised.sum())


def measure(tickets: Tickets) -> None:
    """Print how often the first cause, and one of the first three, is right; what shares mean."""
    right: Counter[str] = Counter()
    three: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    worth: dict[int, list[bool]] = {}
    for at, causes, score in crossed(tickets):
        shown = shares(score)
        best = [causes[place] for place in np.argsort(-shown)[:3]]
        for name in (tickets.about[at]["set"], "all"):
            asked[name] += 1
            right[name] += tickets.is_right(at, best[0])
            three[name] += any(tickets.is_right(at, cause) for cause in best)
        worth.setdefault(int(shown.max() * 5), []).append(tickets.is_right(at, best[0]))
    for name in asked:
        of_all = asked[name]
        print(f"{name:12} {of_all:5} {right[name] / of_all:7.1%} {three[name] / of_all:7.1%}")
    for fifth, answers in sorted(worth.items()):
        fit = sum(answers) / len(answers)
        print(f"{fifth * 20:3}-{fifth * 20 + 20} %: {len(answers):5} {fit:7.1%}")


def packed(tickets: Tickets) -> tuple[Model, bytes]:
    """Return the model that these tickets teach, as the reader holds it."""
    model = fitted(tickets)
    scale = float(np.abs(model.coef_).max()) / 127
    rows = (np.round(model.coef_.T / scale) + 128).astype(np.uint8)
    head = Model(
        causes=tuple(map(str, model.classes_)),
        base=tuple(map(float, np.round(model.intercept_, 4))),
        scale=scale,
        sharpness=_SHARPNESS,
    )
    return head, rows.tobytes()


def train(tickets: Tickets) -> None:
    """Write the model that all tickets teach."""
    head, rows = packed(tickets)
    MODEL.write_bytes(zlib.compress(msgspec.json.encode(head) + b"\n" + rows, 9))
    print(f"{len(tickets.rows)} tickets, {len(head.causes)} causes, {MODEL.stat().st_size:,} bytes")


def main() -> None:
    """Carry out one of the three commands."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("add")
    adding.add_argument("set")
    adding.add_argument("labels", type=Path)
    adding.add_argument("texts", type=Path)
    commands.add_parser("measure")
    commands.add_parser("train")
    asked = parser.parse_args()
    tickets = Tickets.read()
    if asked.command == "add":
        print(tickets.add(asked.set, asked.labels, asked.texts), "tickets added")
        tickets.write()
    elif asked.command == "measure":
        measure(tickets)
    else:
        train(tickets)


if __name__ == "__main__":
    main()
