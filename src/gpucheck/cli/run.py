"""What several commands do: open tables and host, run the probes, load a snapshot."""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from gpucheck.cli.text import RefusedError, echo, printable, words_of
from gpucheck.language import in_series, say, spoken

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.facts.snapshot import Snapshot
    from gpucheck.machine import Host
    from gpucheck.machine.target import TargetWish
    from gpucheck.probes.collector import Collected
    from gpucheck.tables import Tables

_SLOW = 3.0
_LONGEST_REFUSAL = 600
_ASK_THE_DRIVER = ("nvml", "cuda_driver", "nvidia_smi")


def open_tables(directory: str | None, *, whole: bool = True) -> "Tables":
    """Open the compatibility tables; a folder without tables is a usage error.

    With ``whole``, tables from another folder than the built-in one are read and checked at once,
    because they are untrusted data.
    """
    from gpucheck.tables import Tables, TablesError  # noqa: PLC0415
    from gpucheck.tables.location import folder_of_tables  # noqa: PLC0415

    try:
        tables = Tables(folder_of_tables(directory))
        tables.index()
    except TablesError as error:
        raise click.UsageError(words_of(error)) from error
    if whole and directory is not None:
        refuse_broken(tables)
    return tables


def refuse_broken(tables: "Tables") -> None:
    """Read every row and look up its source.

    Raises:
        click.UsageError: a row cannot be read, or has no known source; the sentence names it.
    """
    from gpucheck.tables import TablesError  # noqa: PLC0415
    from gpucheck.tables.check import problems  # noqa: PLC0415

    try:
        broken = [one for one in problems(tables) if _is_serious(one)]
    except TablesError as error:
        raise click.UsageError(words_of(error)) from error
    if broken:
        raise click.UsageError(
            say("{broken} (gpucheck tables check shows all)", broken=printable(broken[0]))
        )


def _is_serious(problem: str) -> bool:
    """Whether a problem makes rows untrustworthy; an unused source or another layout does not."""
    return not ("no row uses the source" in problem or "is not written in the form" in problem)


def open_host(sysroot: str | None) -> "Host":
    """Return the host for this machine, or for the files below a sysroot."""
    from gpucheck.machine import LiveHost  # noqa: PLC0415

    return LiveHost(sysroot or "")


def run_probes(
    host: "Host",
    tables: "Tables",
    options: dict[str, Any],
    *,
    request: Any = None,  # noqa: ANN401  # a Request, imported late
    skip: Sequence[str] = (),
) -> "Collected":
    """Run the probes with progress on a terminal, and return what they found."""
    from gpucheck.facts.request import Request  # noqa: PLC0415
    from gpucheck.machine.target import TargetWish  # noqa: PLC0415
    from gpucheck.probes.collector import Collector  # noqa: PLC0415

    wish = TargetWish(python=options["python"])
    _refuse_wrong_python(host, wish)
    if not options["quiet"]:
        say_whose_python(host, wish)
    progress = Progress(sys.stderr) if sys.stderr.isatty() and not options["quiet"] else None
    collector = Collector(
        host,
        tables,
        wish=wish,
        request=request or Request(wheel_mirror=options.get("wheel_mirror", "")),
        timeout=options["timeout"],
        skip=skip,
        progress=progress,
        meanwhile=prepare_judgement(tables),
    )
    try:
        return collector.collect()
    finally:
        if progress is not None:
            progress.clear()


def _refuse_wrong_python(host: "Host", wish: "TargetWish") -> None:
    """Refuse an interpreter that the user named and that cannot be asked, in one sentence.

    Raises:
        RefusedError: there is none, or it is a shim of pyenv that finds none.
    """
    from gpucheck.machine.target import refusal  # noqa: PLC0415

    if why := refusal(host, wish):
        raise RefusedError(printable(why, limit=_LONGEST_REFUSAL))


def say_whose_python(host: "Host", wish: "TargetWish") -> None:
    """Say on stderr that root is about to run another user's Python, if it is so."""
    from gpucheck.machine.owners import foreign_owner  # noqa: PLC0415

    if (found := foreign_owner(host, wish)) is None:
        return
    path, uid = found
    line = say(
        "gpucheck now runs {python} as root, although user {user} can change it. Run gpucheck as "
        "{user} if you do not trust that environment.",
        python=path,
        user=_user(uid),
    )
    echo(line, limit=_LONGEST_REFUSAL)


def _user(uid: int) -> str:
    """Return the name of a user, or the number of one without a name."""
    import pwd  # noqa: PLC0415  # Windows has no such module

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def prepare_judgement(tables: "Tables") -> Iterator[None]:
    """Import what judges and prints, and read its tables, in many small steps."""
    from gpucheck.facts.sections import all_sections  # noqa: PLC0415
    from gpucheck.findings import each_rule  # noqa: PLC0415
    from gpucheck.tables import Table  # noqa: PLC0415

    needs: set[type[Any]] = set()
    for rule in each_rule():
        needs.update(rule.needs.values())
        yield
    from gpucheck.output import terminal  # noqa: F401, PLC0415

    all_sections()
    yield
    for table in (need for need in needs if issubclass(need, Table)):
        tables.get(table)


class Progress:
    """One line on a terminal that shows what is still running, once it takes long."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown = False

    def __call__(self, names: Sequence[str], seconds: float) -> None:
        """Show what is still running, once it takes more than a second."""
        if seconds < 1:
            return
        driver = seconds > _SLOW and any(name in _ASK_THE_DRIVER for name in names)
        told = {"names": in_series(names), "seconds": seconds}
        if driver:
            line = say(
                "waiting for {names} ({seconds:.0f} s; GPUs without persistence mode wake slowly)",
                **told,
            )
        elif "wheel_hashes" in names:
            line = say("waiting for {names} ({seconds:.0f} s; -v reads whole libraries)", **told)
        else:
            line = say("waiting for {names} ({seconds:.0f} s)", **told)
        self._out.write(f"\r\x1b[K{spoken(line)}")
        self._out.flush()
        self._shown = True

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            self._out.write("\r\x1b[K")
            self._out.flush()


def load_snapshot(file: str) -> "Snapshot":
    """Read a saved snapshot or report; one that cannot be read is a usage error."""
    from pathlib import Path  # noqa: PLC0415  # every check would pay two milliseconds for it

    from gpucheck.facts.snapshot import SnapshotError, load  # noqa: PLC0415

    try:
        return load(Path(file))
    except SnapshotError as error:
        raise click.UsageError(words_of(error)) from error
