"""The choice of the target interpreter and what is made of its answer."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest
from each import each
from support import machine

from gpucheck.facts import Answer
from gpucheck.facts.torch import Status
from gpucheck.machine import Host, LiveHost, RecordedHost, RecordingHost
from gpucheck.machine.base import Ran
from gpucheck.machine.candidates import TargetWish, ThisProcess, choose
from gpucheck.machine.target import ask, find

VENV = "/home/user/venv/bin/python"
CONDA = "/home/user/miniforge3/envs/ml/bin/python"
SYSTEM = "/usr/bin/python3"
OWN = "/home/user/.local/share/uv/tools/gpucheck/bin/python"
OWN_PREFIX = "/home/user/.local/share/uv/tools/gpucheck"
TOOL = ThisProcess(executable=OWN, prefix=OWN_PREFIX, sys_path=(f"{OWN_PREFIX}/lib/python3.12",))
PROGRAM = {"kind": "file", "mode": 0o755}


def host(
    folder: Path,
    *programs: str,
    env: dict[str, str] | None = None,
    which: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
    links: dict[str, str] | None = None,
) -> RecordedHost:
    stat: dict[str, Any] = dict.fromkeys(programs, PROGRAM)
    return machine(
        folder, host={"stat": stat, "which": which or {}}, env=env, files=files, links=links
    )


def chosen(door: RecordedHost, python: str | None = None, this: ThisProcess = TOOL) -> list[str]:
    found = choose(door, TargetWish(python=python), this)
    return [f"{candidate.executable} | {candidate.chosen_by}" for candidate in found]


EVERYTHING = {
    "GPUCHECK_PYTHON": "/opt/python/bin/python3",
    "VIRTUAL_ENV": "/home/user/venv",
    "CONDA_PREFIX": "/home/user/miniforge3/envs/ml",
    "PATH": f"{OWN_PREFIX}/bin:/usr/bin",
}


def test_the_order_is_the_contracts(tmp_path: Path) -> None:
    programs = ("/opt/python/bin/python3", "/opt/other/bin/python", VENV, CONDA, SYSTEM, OWN)
    torch = {f"{OWN_PREFIX}/lib/python3.12/torch/version.py": ""}
    door = host(tmp_path, *programs, f"{OWN_PREFIX}/bin/python3", env=EVERYTHING, files=torch)
    this = ThisProcess(
        executable=OWN, prefix=OWN_PREFIX, sys_path=TOOL.sys_path, run_as="python -m gpucheck"
    )
    assert chosen(door, "/opt/other/bin/python", this) == [
        "/opt/other/bin/python | --python",
        "/opt/python/bin/python3 | $GPUCHECK_PYTHON",
        f"{OWN} | python -m gpucheck",
        f"{VENV} | the active virtual environment",
        f"{CONDA} | the active conda environment",
        f"{OWN} | gpucheck's own environment has torch",
        f"{SYSTEM} | the first python3 on PATH",
    ]


ACTIVE_OWN = {"VIRTUAL_ENV": OWN_PREFIX, "PATH": f"{OWN_PREFIX}/bin:/usr/bin"}
ACTIVE = f"{OWN} | the active virtual environment"
ON_PATH = f"{SYSTEM} | the first python3 on PATH"
IN_CONDA = f"{CONDA} | the active conda environment"
TORCH_OF_SYSTEM = "/usr/local/lib/python3.11/dist-packages/torch/version.py"
TORCH_OF_CONDA = "/home/user/miniforge3/envs/ml/lib/python3.11/site-packages/torch/version.py"
TORCH_OF_FOLDER = "/home/user/project/.venv/lib/python3.11/site-packages/torch/version.py"


@each(
    ("torch", "order"),
    [
        ((), [ACTIVE, IN_CONDA, ON_PATH]),
        ((TORCH_OF_SYSTEM,), [ON_PATH, ACTIVE, IN_CONDA]),
        ((TORCH_OF_SYSTEM, TORCH_OF_CONDA), [IN_CONDA, ON_PATH, ACTIVE]),
        (
            (f"{OWN_PREFIX}/lib/python3.12/torch/version.py", TORCH_OF_SYSTEM),
            [ACTIVE, IN_CONDA, f"{OWN} | gpucheck's own environment has torch", ON_PATH],
        ),
    ],
)
def test_gpuchecks_own_environment_without_torch_is_passed_over_for_one_with_torch(
    tmp_path: Path, torch: tuple[str, ...], order: list[str]
) -> None:
    env = {**ACTIVE_OWN, "CONDA_PREFIX": EVERYTHING["CONDA_PREFIX"]}
    door = host(tmp_path, OWN, CONDA, SYSTEM, env=env, files=dict.fromkeys(torch, ""))
    assert chosen(door) == order
    first = choose(door, TargetWish(), TOOL)[0]
    assert first.is_own == (order[0] == ACTIVE)
    assert first.passed_over == ("" if first.is_own else OWN)


def test_an_environment_of_the_user_is_not_passed_over(tmp_path: Path) -> None:
    env = {"VIRTUAL_ENV": "/home/user/venv", "PATH": "/home/user/venv/bin:/usr/bin"}
    door = host(tmp_path, VENV, SYSTEM, env=env, files={TORCH_OF_SYSTEM: ""})
    assert chosen(door)[0] == f"{VENV} | the active virtual environment"


@each(("uid", "taken"), [(1000, True), (0, True), (1001, False)])
def test_the_venv_of_the_folder_is_taken_if_it_is_no_strangers(
    tmp_path: Path, uid: int, *, taken: bool
) -> None:
    python = "/home/user/project/.venv/bin/python"
    folder = {"kind": "directory", "mode": 0o755, "uid": uid}
    facts = {
        "stat": {OWN: PROGRAM, python: PROGRAM, "/home/user/project/.venv": folder},
        "identity": {"os": "linux", "cwd": "/home/user/project", "uid": 1000},
    }
    door = machine(tmp_path, host=facts, env=ACTIVE_OWN, files={TORCH_OF_FOLDER: ""})
    assert chosen(door) == [*[f"{python} | the .venv of the current folder"] * taken, ACTIVE]


def test_python_on_path_is_not_gpuchecks_own(tmp_path: Path) -> None:
    own = f"{OWN_PREFIX}/bin/python3"
    door = host(tmp_path, own, OWN, SYSTEM, env={"PATH": f"{OWN_PREFIX}/bin:/usr/bin"})
    assert chosen(door) == [f"{SYSTEM} | the first python3 on PATH"]


def test_own_folder_behind_a_link_is_still_its_own(tmp_path: Path) -> None:
    door = host(
        tmp_path, OWN, f"{OWN_PREFIX}/bin/python3", SYSTEM,
        env={"PATH": "/home/user/tool-bin:/usr/bin"},
        links={"/home/user/tool-bin": f"{OWN_PREFIX}/bin"},
    )  # fmt: skip
    assert chosen(door) == [f"{SYSTEM} | the first python3 on PATH"]


def test_python_without_three(tmp_path: Path) -> None:
    door = host(tmp_path, "/opt/conda/bin/python", env={"PATH": "bin::/opt/conda/bin"})
    assert chosen(door) == ["/opt/conda/bin/python | the first python on PATH"]


def test_aliases_of_the_store_come_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    r"""Windows has a ``python.exe`` that opens the Store: a Python behind it is the real one."""
    store, real = "/c/Microsoft\\WindowsApps", "/c/Python312"
    monkeypatch.setattr(os, "name", "nt")
    path = os.pathsep.join((store, real))
    door = host(tmp_path, f"{store}/python.exe", f"{real}/python.exe", env={"PATH": path})
    assert chosen(door) == [f"{real}/python.exe | the first python.exe on PATH"]
    door = host(tmp_path / "alone", f"{store}/python.exe", env={"PATH": store})
    assert chosen(door) == [f"{store}/python.exe | the first python.exe on PATH"]


def test_the_alias_of_the_store_is_no_interpreter() -> None:
    class Door:
        def stage(self, _name: str) -> None:
            pass

        def run(self, _argv: list[str], timeout: float, mark: str) -> Answer[Ran]:
            assert timeout
            assert mark
            message = "Python was not found; run without arguments to install from the Store"
            return Answer(Ran(status=9009, out="", err=message), "python.exe")

    reply = ask(cast("Host", Door()), "python.exe")
    assert reply.status == "not-found"
    assert reply.detail.startswith("no interpreter was found")


def test_a_stale_environment_is_passed_over(tmp_path: Path) -> None:
    door = host(tmp_path, SYSTEM, env={"VIRTUAL_ENV": "/home/user/removed", "PATH": "/usr/bin"})
    assert chosen(door) == [f"{SYSTEM} | the first python3 on PATH"]


def test_python_option_takes_the_folder_of_an_environment(tmp_path: Path) -> None:
    door = host(tmp_path, VENV, SYSTEM)
    assert chosen(door, "/home/user/venv")[0] == f"{VENV} | --python"


def test_python_option_takes_a_command(tmp_path: Path) -> None:
    door = host(tmp_path, SYSTEM, which={"python3.11": SYSTEM})
    assert chosen(door, "python3.11")[0] == f"{SYSTEM} | --python"


@each(
    ("python", "problem"),
    [
        ("/home/user/nowhere", "--python: /home/user/nowhere does not exist"),
        ("/home/user/empty", "--python: the folder /home/user/empty has no Python in it"),
        ("/home/user/notes.txt", "--python: /home/user/notes.txt is not a program that may be run"),
    ],
)
def test_a_bad_wish_is_said_and_not_passed_over(tmp_path: Path, python: str, problem: str) -> None:
    files = {"/home/user/empty/readme": "", "/home/user/notes.txt": ""}
    door = host(tmp_path, VENV, env={"VIRTUAL_ENV": "/home/user/venv"}, files=files)
    assert choose(door, TargetWish(python=python), TOOL)[0].problem == problem


def test_a_bad_variable_is_said_too(tmp_path: Path) -> None:
    door = host(tmp_path, SYSTEM, env={"GPUCHECK_PYTHON": "/gone/python", "PATH": "/usr/bin"})
    assert choose(door, TargetWish(), TOOL)[0].problem == (
        "$GPUCHECK_PYTHON: /gone/python does not exist"
    )


TORCHRUN = {
    "console script": ("/home/user/venv/bin/python", "/home/user/venv/bin/torchrun", "-m", "x"),
    "module": ("/home/user/venv/bin/python", "-m", "torch.distributed.run", "--no-python"),
}


@each("command", TORCHRUN.values(), ids=TORCHRUN)
@each(
    "env",
    [{"TORCHELASTIC_RUN_ID": "none"}, {"RANK": "0", "WORLD_SIZE": "8", "MASTER_ADDR": "node0"}],
    ids=["elastic", "ranks"],
)
def test_torchruns_interpreter(
    tmp_path: Path, command: tuple[str, ...], env: dict[str, str]
) -> None:
    this = ThisProcess(executable=OWN, prefix=OWN_PREFIX, parent_command=command)
    assert chosen(host(tmp_path, VENV, env=env), this=this) == [f"{VENV} | torchrun's interpreter"]


def test_torchrun_named_without_a_folder(tmp_path: Path) -> None:
    this = ThisProcess(parent_command=("python", "-m", "torch.distributed.run"))
    env = {"TORCHELASTIC_RUN_ID": "17"}
    door = host(tmp_path, VENV, env=env, which={"python": VENV})
    assert chosen(door, this=this) == [f"{VENV} | torchrun's interpreter"]


@each(
    ("env", "command"),
    [
        ({"RANK": "0", "WORLD_SIZE": "8", "MASTER_ADDR": "n0"}, ("/usr/bin/srun", "gpucheck")),
        ({"RANK": "0", "WORLD_SIZE": "8", "MASTER_ADDR": "n0"}, (VENV, "launch_my_job.py")),
        ({}, TORCHRUN["module"]),
        ({"TORCHELASTIC_RUN_ID": "1"}, ("bash", "-c", "gpucheck preflight")),
        ({"TORCHELASTIC_RUN_ID": "1"}, ("/home/user/gone/bin/python", "torchrun")),
        ({"TORCHELASTIC_RUN_ID": "1"}, ()),
    ],
)
def test_not_under_torchrun(tmp_path: Path, env: dict[str, str], command: tuple[str, ...]) -> None:
    assert chosen(host(tmp_path, VENV, env=env), this=ThisProcess(parent_command=command)) == []


def test_own_interpreter_without_torch_is_no_candidate(tmp_path: Path) -> None:
    assert chosen(host(tmp_path, OWN)) == []


def test_nothing_found_is_an_unknown_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # here may be a .venv
    for name in ("GPUCHECK_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "path", [])
    target = find(LiveHost(), TargetWish()).value
    assert target is not None
    assert target.status == "not-found"
    assert "--python" in target.detail


def test_nothing_is_run_below_a_sysroot(tmp_path: Path) -> None:
    target = find(LiveHost(sysroot=str(tmp_path)), TargetWish(python=sys.executable)).value
    assert target is not None
    assert target.status == "not-started"


def fake(folder: Path, text: str) -> str:
    script = folder / "python"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    return str(script)


@pytest.mark.process
@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("echo nonsense; echo more", "no-answer", "ended without an answer"),
        ("exit 0", "no-answer", ""),
        ("echo 'Fatal Python error: init_import_site' >&2; exit 3", "exit-status", "init_import"),
        ("kill -SEGV $$", "signal", "signal 11"),
        ("sleep 20", "timed-out", "within 0 s"),
        ('echo "$2 $2"', "bad-answer", "not understood"),
        ('echo "$2[]$2"', "bad-answer", "not understood"),
        ('echo "$2{}$2"', "bad-answer", "empty"),
        ('echo "$2{\\"description\\":{\\"version\\":3}}$2"', "bad-answer", "Expected"),
        ('echo "$2{\\"too_old\\":\\"2.7.18\\"}$2"', "too-old", "Python 2.7.18"),
        ("yes hello | head -c 3000000", "no-answer", ""),
        ("head -c 5000 /dev/urandom", "no-answer", ""),
    ],
)
def test_what_may_come_instead_of_an_answer(
    tmp_path: Path, text: str, status: Status, words: str
) -> None:
    limit = 0.4 if "sleep" in text else 5.0
    reply = ask(LiveHost(), fake(tmp_path, text), limit)
    assert reply.status == status
    assert words in reply.detail
    assert reply.answer is None


@pytest.mark.process
def test_a_hanging_interpreter_costs_its_limit_only(tmp_path: Path) -> None:
    start = time.monotonic()
    assert ask(LiveHost(), fake(tmp_path, "sleep 60"), 0.3).status == "timed-out"
    assert time.monotonic() - start < 20


@pytest.mark.process
def test_an_answer_counts_even_if_the_end_goes_wrong(tmp_path: Path) -> None:
    answer = (
        '{\\"description\\":{\\"version\\":\\"3.11.7\\",\\"prefix\\":\\"/x\\",\\"sys_path\\":[]}}'
    )
    reply = ask(LiveHost(), fake(tmp_path, f'echo "noise$2{answer}$2noise"; exit 9'))
    assert reply.status == "ok"
    assert reply.answer is not None
    assert reply.answer.version == "3.11.7"
    assert reply.answer.has_pip is None


@pytest.mark.process
@pytest.mark.parametrize(
    "code",
    [
        "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()",
        "import atexit, time; atexit.register(time.sleep, 60)",
        "import subprocess; subprocess.Popen(['sleep', '60'])",
    ],
)
def test_an_interpreter_that_does_not_end_has_answered_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    start = time.monotonic()
    assert ask(LiveHost(), sys.executable).status == "ok"
    assert time.monotonic() - start < 5


@pytest.mark.process
def test_what_cannot_be_started(tmp_path: Path) -> None:
    assert ask(LiveHost(), str(tmp_path / "nothing")).status == "not-started"
    text = tmp_path / "text"
    text.write_text("no program")
    text.chmod(0o755)
    assert ask(LiveHost(), str(text)).status == "not-started"


@pytest.mark.process
def test_this_interpreter_is_found_and_described() -> None:
    target = find(LiveHost(), TargetWish(python=sys.executable)).value
    assert target is not None
    assert target.status == "ok"
    assert target.chosen_by == "--python"
    assert target.answer is not None
    assert target.answer.prefix == sys.prefix
    assert target.answer.sys_path[0] == os.getcwd()  # noqa: PTH109


@pytest.mark.process
def test_a_recording_replays(tmp_path: Path) -> None:
    door = RecordingHost(LiveHost())
    live = find(door, TargetWish(python=sys.executable)).value
    kept = door.recorded()
    assert kept["commands"] == {}
    again = machine(tmp_path, answers={"worker.json": kept["answers"]["worker.json"]})
    assert find(again, TargetWish()).value == live


@each("raw", [{"status": "splendid"}, {"status": "ok", "answer": {"version": 3}}, {}])
def test_a_broken_recording_is_a_problem(tmp_path: Path, raw: dict[str, object]) -> None:
    answer = find(machine(tmp_path, answers={"worker.json": raw}), TargetWish())
    assert answer.value is None
    assert answer.problem


@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="an environment of Windows has no links")
def test_an_environment_whose_python_was_removed_is_repaired_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is named, the command is the same, so it runs once: it installs a pip."""
    folder = tmp_path / "an env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    for link in (folder / "bin").glob("python*"):
        link.unlink()
        link.symlink_to("/gone/python3")

    def problems() -> set[str]:
        """Return what is said if it is named by its folder, by its program, and if it is active."""
        named = [
            choose(LiveHost(), TargetWish(python=str(path)))[0].problem
            for path in (folder, folder / "bin" / "python")
        ]
        with monkeypatch.context() as patch:
            patch.setenv("VIRTUAL_ENV", str(folder))
            return {*named, choose(LiveHost(), TargetWish(python=None))[0].problem}

    broken = problems()
    assert all(f"{folder}/bin/python leads to /gone/python3, which is gone" in it for it in broken)
    (command,) = {problem.partition("same version: ")[2] for problem in broken}
    command = command.replace("PYTHON", sys.executable)
    subprocess.run(["/bin/sh", "-c", command], check=True)
    assert problems() == {""}
    assert ask(LiveHost(), str(folder / "bin" / "python")).status == "ok"
