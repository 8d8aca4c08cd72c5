"""Drills against shapes and launchers: is the injected fault the one that is named, and in time?

    PYTHON_WITH_GPUCHECK benchmarks/preflight_matrix.py [--python PYTHON_WITH_TORCH]
        [--launchers alone,torchrun,srun,mpirun] [--shapes 1x8,4x2,5x1,2x4] [--drills hang,wrong]
        [--healthy N] [--timeout 60] [--table FILE]

Each cell is a real pre-flight of CPU ranks over gloo on this machine: nodes are agents of
torchrun, nodes of a Slurm cluster that is started here (``slurm_cluster.py`` of the tests), or, for
mpirun, host names of their own on this machine.
Prints a line a cell and at the end a Markdown table: the seconds until all tasks had left, or what
was wrong: a culprit that was not injected, another exit status, statuses that differ, no end in
time. ``--healthy N`` runs each shape N times without a fault: nobody may be accused.
"""

import argparse
import contextlib
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import gate_runs
import slurm_cluster
from gate_runs import Gate, Launcher, Shape

_SHAPES = (Shape(1, 8), Shape(4, 2), Shape(5, 1), Shape(2, 4))
_LAUNCHERS: tuple[Launcher, ...] = ("alone", "torchrun", "srun", "mpirun")
_NODES = tuple(f"gate0{number}" for number in range(1, 6))
_SLACK = 20.0
"""Seconds beyond the time limit until all must have left: the launcher's own start and end."""
_PORTS = itertools.count(29710, 20)

Judge = Callable[[Gate, Shape], str]
"""Says what is wrong with the outcome; "" when nothing is."""


class Drill:
    """A fault and what must be said of it."""

    def __init__(self, faults: Callable[[Shape], list[str]], judge: Judge) -> None:
        self.faults = faults
        self.judge = judge


def _named(slug: str, at: Callable[[Shape], int], status: int = 1) -> Judge:
    def judge(gate: Gate, shape: Shape) -> str:
        return _exactly(gate, {(slug, (at(shape),))}, status)

    return judge


def _exactly(gate: Gate, wanted: set[tuple[str, tuple[int, ...]]], status: int) -> str:
    found = {(one["slug"], tuple(one["ranks"])) for one in gate.errors}
    if found != wanted:
        return f"named {sorted(found)} instead of {sorted(wanted)}"
    return "" if gate.status == status else f"statuses {gate.statuses} instead of {status}"


def _link(gate: Gate, shape: Shape) -> str:
    """Between the ends of the link, or without a name: never somebody else."""
    ends = {0, shape.world - 1}
    for one in gate.errors:
        hosts = {rank // shape.ranks for rank in one["ranks"]}
        of_ends = {rank // shape.ranks for rank in ends}
        is_ours = set(one["ranks"]) <= ends or (one["is_link"] and hosts <= of_ends)
        if not is_ours:
            return f"accused {one['slug']} {one['ranks']}"
    if shape.nodes == 1 and not any(set(one["ranks"]) == ends for one in gate.errors):
        return "did not name the link"
    wanted = 1 if gate.errors else 3
    return "" if gate.status in (wanted, 3) else f"statuses {gate.statuses}"


def _last(shape: Shape) -> int:
    return shape.world - 1


def _one(_shape: Shape) -> int:
    return 1


DRILLS: dict[str, Drill] = {
    "hang": Drill(lambda s: [f"hang:rank={_last(s)}"], _named("rank-hangs", _last)),
    "stop": Drill(lambda _: ["stop:rank=1"], _named("rank-hangs", _one)),
    "crash": Drill(lambda s: [f"crash:rank={_last(s)}"], _named("rank-crashed", _last)),
    "wrong": Drill(lambda _: ["wrong:rank=1"], _named("wrong-result", _one)),
    "slow": Drill(lambda _: ["slow:rank=1,factor=5"], _named("gpu-slow", _one, 5)),
    "absent": Drill(lambda s: [f"absent:rank={_last(s)}"], _named("rank-missing", _last)),
    "link": Drill(lambda s: [f"link:0-{_last(s)}"], _link),
    "hang+crash": Drill(
        lambda s: ["hang:rank=1", f"crash:rank={_last(s)}"],
        lambda gate, s: _exactly(gate, {("rank-hangs", (1,)), ("rank-crashed", (_last(s),))}, 1),
    ),
    "wrong+slow": Drill(
        lambda s: ["wrong:rank=1", f"slow:rank={_last(s)},factor=5"],
        lambda gate, s: _exactly(gate, {("wrong-result", (1,)), ("gpu-slow", (_last(s),))}, 1),
    ),
}


def _healthy(gate: Gate, _shape: Shape) -> str:
    if gate.report.get("culprits"):
        return f"accused {gate.culprits}"
    return "" if gate.status == 0 else f"statuses {gate.statuses}: {gate.said[-300:]}"


def main() -> int:
    """Run the cells and print; fail when one is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--launchers", default=",".join(_LAUNCHERS))
    parser.add_argument("--shapes", default=",".join(map(str, _SHAPES)))
    parser.add_argument("--drills", default=",".join(DRILLS))
    parser.add_argument("--healthy", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    launchers = [one for one in _LAUNCHERS if one in arguments.launchers.split(",")]
    shapes = [one for one in _SHAPES if str(one) in arguments.shapes.split(",")]
    drills = [one for one in arguments.drills.split(",") if one in DRILLS]
    rows: list[tuple[str, list[str]]] = []
    bad = 0
    with contextlib.ExitStack() as stack:
        slurm = (
            stack.enter_context(slurm_cluster.cluster(nodes=_NODES))
            if "srun" in launchers
            else None
        )
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gates-")))
        root.chmod(0o755)
        for launcher, shape in _places(launchers, shapes):
            cells = []
            for name in [*["healthy"] * arguments.healthy, *drills]:
                if launcher == "alone" and name == "absent":
                    cells.append("no launcher")
                    continue
                options = ["--timeout", str(arguments.timeout)]
                if name != "healthy":
                    options += [x for f in DRILLS[name].faults(shape) for x in ("--drill", f)]
                gate = gate_runs.run(
                    launcher, shape, options, root / f"{launcher}-{shape}-{name}-{next(_PORTS)}",
                    gate_runs.Setting(
                        python=arguments.python, port=next(_PORTS), slurm=slurm,
                        limit=arguments.timeout + 120,
                    ),
                )  # fmt: skip
                wrong = (DRILLS[name].judge if name != "healthy" else _healthy)(gate, shape)
                if gate.seconds > arguments.timeout + _SLACK:
                    wrong = wrong or f"took {gate.seconds:.0f} s"
                bad += bool(wrong)
                cells.append(f"**{wrong}**" if wrong else f"{gate.seconds:.0f} s")
                print(f"{launcher} {shape} {name}: {wrong or f'{gate.seconds:.1f} s'}", flush=True)
            rows.append((f"{launcher} {shape}", cells))
    table = _table(["healthy"] * arguments.healthy + drills, rows)
    print(table)
    if arguments.table:
        arguments.table.write_text(table)
    print(f"{bad} wrong")
    return 1 if bad else 0


def _places(launchers: list[Launcher], shapes: list[Shape]) -> Iterator[tuple[Launcher, Shape]]:
    """Yield where something can be run: alone there is one node."""
    for launcher, shape in itertools.product(launchers, shapes):
        if launcher != "alone" or shape.nodes == 1:
            yield launcher, shape


def _table(names: list[str], rows: list[tuple[str, list[str]]]) -> str:
    lines = [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    lines += [f"| {place} | {' | '.join(cells)} |" for place, cells in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
