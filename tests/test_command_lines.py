"""Every command line in the pages, the help and the recipes is run, or at least parsed."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import click
import command_lines
import pack_tables
import pytest
from command_lines import Line
from each import each

from gpucheck.cli import gpucheck

LINES = dict.fromkeys((*command_lines.in_blocks(), *command_lines.in_help()))
"""All that somebody may copy, each once."""
_TOOL = re.compile(r"python (?:tools|benchmarks)/\S+\.py\b")
CALLING = [line for line in LINES if line.calls]
RUN = list(dict.fromkeys(line.text for line in LINES if line.runs_here))

TEXTS = {
    "issue.txt": "RuntimeError: CUDA error: no kernel image is available for execution\n",
    "Dockerfile": "FROM python:3.12\nRUN pip install torch==2.6.0\n",
    "compose.yaml": "services: {train: {image: train, build: .}}\n",
    "requirements.txt": "torch==2.6.0\n",
    "pyproject.toml": '[project]\nname = "p"\nversion = "1"\ndependencies = ["torch==2.6.0"]\n',
    "issues.jsonl": '{"id": 1, "text": "CUDA out of memory"}\n',
    "machine.json": '{"gpu": "RTX 4090", "torch": "2.9.1"}\n',
    "runs.jsonl": "",
    "train.py": 'raise RuntimeError("CUDA out of memory")\n',
}
"""Stand-ins for the files that lines name."""
SAME = {
    "issue.txt": ("error.log", "nvidia-smi.txt", "issue.md", "tickets/1.txt", "issues/1.txt"),
    "issues.jsonl": ("more.jsonl",),
    "before.json": ("after.json", "report.json", "report-of-may.json", "snapshot.json"),
}
REFUSED = {
    "gpucheck baseline lock --tool conda -o torch-lock.txt": "no packages of conda",
    "gpucheck fix --undo": "There is no run in",
}
"""Lines that are refused here, and with which words: what they need is not here."""
GPUCHECK = r"""#!/bin/sh
# What a line calls: on the CPU where it would need GPUs, and not for minutes. Lines that name the
# CPU, and one page of results, have a torch; importing it is most of the time of the others.
more=
case "$1 $*" in
    "selftest "*"--device cpu"*) ;;
    "selftest "*html*) more="--level quick" ;;
    "selftest "*) more="--level quick --python $HOME/venv" ;;
    *" --history"* | *" --help"*) ;;
    preflight*--device*) more="--timeout 20" ;;
    preflight*) more="--device cpu --ranks 2 --timeout 20 --python $HOME/venv" ;;
    node*standard*) more="--device cpu --ranks 2" ;;
    fix*--undo*) more="--python $HOME/venv" ;;
    fix*) more="--python $HOME/venv --dry-run" ;;
esac
PYTHON -m gpucheck "$@" $more
status=$?
echo "$status" >>"$CALLED"
exit $status
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder, now the current one, with empty files of the names that lines have."""
    for name in (*TEXTS, "before.json", "machine.zip", "torch-lock.txt"):
        (tmp_path / name).touch()
        for other in SAME.get(name, ()):
            (tmp_path / other).parent.mkdir(exist_ok=True)
            (tmp_path / other).touch()
    for name in ("host", "shared/gpucheck", "mytables"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@each("line", CALLING, ids=lambda line: line.text)
def test_gpuchecks_own_parser_understands_it(line: Line, folder: Path) -> None:
    for words in line.calls:
        command_lines.parse([_here(word, folder) for word in words])


@each("line", lambda: [*command_lines.in_recipes()], ids=lambda line: f"{line.where} {line.text}")
def test_a_recipe_is_understood(line: Line, folder: Path) -> None:
    assert line.calls
    for words in line.calls:
        command_lines.parse([_here(word, folder) for word in words])


@each("line", lambda: [*command_lines.in_sentences()], ids=lambda line: line.text)
def test_a_command_in_a_sentence_exists_with_its_options(line: Line) -> None:
    (words,) = line.calls or [[]]
    context = click.Context(gpucheck)
    command: click.Command = gpucheck
    named = [word.strip("[]") for word in words]
    while isinstance(command, click.Group) and named and not named[0].startswith("-"):
        found = command.get_command(context, named.pop(0))
        assert found is not None, line
        command = found
    if command is gpucheck:
        check = gpucheck.get_command(context, "check")
        assert check is not None
        known = {option for one in (gpucheck, check) for option in _options(one)}
    else:
        known = _options(command)
    for word in named:
        option = word.partition("=")[0]
        assert not option.startswith("--") or option in known, line


def test_an_option_that_does_not_exist_is_found(folder: Path) -> None:
    for text in ("srun gpucheck preflight --nope", "echo x | gpucheck triage --nope > y",
                 "gpucheck baseline collct", 'run "$(gpucheck tables nope)"'):  # fmt: skip
        (words,) = Line("", text).calls
        with pytest.raises(click.UsageError):
            command_lines.parse([_here(word, folder) for word in words])


def test_lines_are_found_and_most_that_call_gpucheck_are_run() -> None:
    assert {line.where for line in LINES} > {"README.md", "docs/fix.md", "gpucheck check --help"}
    assert len(LINES) > 150
    assert len(RUN) > 0.75 * len({line.text for line in CALLING})
    assert {*command_lines.NOT_RUN, *REFUSED} <= {line.text for line in LINES}


@pytest.mark.process
@each("line", [line for line in LINES if _TOOL.match(line.text)], ids=lambda line: line.text)
def test_a_tool_has_the_options_of_its_lines(line: Line) -> None:
    """What it does is tested elsewhere: it asks the package index, or takes hours."""
    words = line.text.split()[1:]
    task = words[1:2] if words[1:] and words[1].islower() and words[1].isalpha() else []
    done = subprocess.run(
        [sys.executable, words[0], *task, "--help"], cwd=command_lines.ROOT,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {word for word in words if word.startswith("--")} <= {
        *re.findall(r"--[a-z][a-z-]*", done.stdout)
    }


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make what the lines name: files, a state, a fleet, an environment, a clipboard."""
    made = tmp_path_factory.mktemp("stand-ins")
    for name, text in TEXTS.items():
        (made / name).write_text(text)
    tools = made / ".venv" / "bin"
    tools.mkdir(parents=True)
    for name, text in {
        "gpucheck": GPUCHECK.replace("PYTHON", sys.executable),
        "pbpaste": "#!/bin/sh\ncat issue.txt\n",
        "python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
    }.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    for folder in ("venv", "project/.venv"):
        venv.create(made / folder, symlinks=True, with_pip=False)
    shutil.copytree(command_lines.ROOT / "compat_tables", made / "mytables")
    _pack_newer_tables(made)
    (made / "shared" / "gpucheck").mkdir(parents=True)
    for line in (
        "gpucheck baseline collect -o before.json",
        "gpucheck baseline collect --record machine.zip",
        "gpucheck baseline lock -o torch-lock.txt",
        "gpucheck baseline save --anyway",
        "gpucheck baseline save --anyway --fleet /shared/gpucheck",
    ):
        statuses, said = _run(line, made)
        assert statuses == [0], said
    for name, others in SAME.items():
        for other in others:
            (made / other).parent.mkdir(exist_ok=True)
            shutil.copy(made / name, made / other)
    return made


@pytest.mark.process
@each("line", RUN, ids=str, shards=4)
def test_it_runs(line: str, stand_ins: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(stand_ins, place, symlinks=True)
    if record := re.search(r"--record (\S+)", line):
        (place / record[1]).unlink(missing_ok=True)
    statuses, said = _run(line, place)
    assert statuses, said
    if line in REFUSED:
        assert statuses == [2]
        assert REFUSED[line] in said
    else:
        assert {*statuses} <= {0, 1, 3, 4, 5}, said


def _pack_newer_tables(made: Path) -> None:
    newer = made / "newer"
    shutil.copytree(command_lines.ROOT / "compat_tables", newer)
    index = json.loads((newer / "index.json").read_text())
    (newer / "index.json").write_text(json.dumps({**index, "version": "9999.1.1"}))
    pack_tables.pack(newer, made / "gpucheck-tables.zip")
    shutil.rmtree(newer)


def _run(line: str, place: Path) -> tuple[list[int], str]:
    """Run a line in a folder; return the status of each gpucheck in it, and what was printed."""
    called = place / ".called"
    called.unlink(missing_ok=True)
    env = {
        **os.environ,
        "PATH": f"{place}/.venv/bin:{os.environ['PATH']}", "HOME": str(place),
        "XDG_STATE_HOME": f"{place}/state", "XDG_DATA_HOME": f"{place}/data",
        "GPUCHECK_LANG": "en", "CALLED": str(called),
        "PYTHONPATH": str(command_lines.ROOT / "src"),
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-c", _here(line, place)], cwd=place, env=env, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    statuses = called.read_text().split() if called.exists() else []
    return [int(status) for status in statuses], done.stdout + done.stderr


def _here(text: str, place: Path) -> str:
    """Return a line or word whose absolute folders are in this one."""
    return re.sub(r"(?<![\w.])/(shared|host)\b", rf"{place}/\1", text)


def _options(command: click.Command) -> set[str]:
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {
        "--help", "--version", "--format",
    }  # fmt: skip
