"""The interpreter section, from recorded answers."""

from pathlib import Path
from typing import Any

from each import each
from support import machine

from gpucheck.facts.system import OsFamily
from gpucheck.facts.torch import Interpreter
from gpucheck.machine.candidates import TargetWish
from gpucheck.probes.interpreter import collect

SITE = "/home/user/venv/lib/python3.11/site-packages"
ANSWER: dict[str, Any] = {
    "version": "3.11.7", "implementation": "cpython", "platform": "linux-x86_64", "bits": 64,
    "free_threaded": False, "prefix": "/home/user/venv", "base_prefix": "/usr",
    "sys_path": ["/home/user/project", "/usr/lib/python3.11", SITE],
    "site_packages": [SITE], "user_site": "/home/user/.local/lib/python3.11/site-packages",
    "user_site_enabled": False, "externally_managed": False, "locked": "", "has_pip": True,
    "glibc": "2.35", "soabi": "cpython-311-x86_64-linux-gnu",
}  # fmt: skip


def taken(
    folder: Path,
    *,
    answer: dict[str, Any] | None = None,
    files: dict[str, str] | None = None,
    os: OsFamily = "linux",
    **raw: Any,  # noqa: ANN401  # the content of worker.json
) -> Interpreter:
    content = {"status": "ok", "answer": answer or ANSWER, **raw}
    record = {"identity": {"os": os}}
    door = machine(folder, files=files, host=record, answers={"worker.json": content})
    return collect(door, TargetWish())


def test_everything_that_it_says_is_taken_over(tmp_path: Path) -> None:
    section = taken(tmp_path, executable="/home/user/venv/bin/python", chosen_by="$GPUCHECK_PYTHON")
    assert section.status == "ok"
    assert section.executable == "/home/user/venv/bin/python"
    assert section.chosen_by == "$GPUCHECK_PYTHON"
    assert {name: getattr(section, name) for name in ANSWER} == ANSWER
    assert section.others == []
    assert section.problems == {}
    assert section.source("version")


def test_what_it_does_not_say_is_unknown(tmp_path: Path) -> None:
    section = taken(tmp_path, answer={"version": "3.9.2", "prefix": "/usr", "sys_path": []})
    assert section.glibc is None
    assert section.problem("glibc") == "the interpreter did not say"


@each(
    ("prefix", "files", "kind"),
    [
        ("/home/user/venv", {"/home/user/venv/pyvenv.cfg": "home = /usr/bin\n"}, "venv"),
        ("/p/.venv", {"/p/.venv/pyvenv.cfg": "home = /usr/bin\nuv = 0.9.5\n"}, "uv"),
        ("/p/.venv", {"/p/.venv/pyvenv.cfg": "home = /opt/uv = x\nprompt = uv\n"}, "venv"),
        ("/opt/conda", {"/opt/conda/conda-meta/history": ""}, "conda"),
        ("/home/user/.pyenv/versions/3.11.7", {}, "pyenv"),
        ("/usr", {}, "system"),
        ("/usr/local", {}, "other"),
        (r"C:\Users\me\venv", {r"C:\Users\me\venv\pyvenv.cfg": "home = C:\\Python311\n"}, "venv"),
    ],
)
def test_kinds(tmp_path: Path, prefix: str, files: dict[str, str], kind: str) -> None:
    os: OsFamily = "windows" if "\\" in prefix else "linux"
    assert taken(tmp_path, answer={**ANSWER, "prefix": prefix}, files=files, os=os).kind == kind


@each(
    ("status", "detail"),
    [
        ("not-found", "--python: /gone does not exist"),
        ("too-old", "/usr/bin/python is Python 3.6.8, but gpucheck needs 3.8 or newer"),
        ("timed-out", "/mnt/nfs/venv/bin/python gave no answer within 8 s"),
        ("signal", "/opt/python was killed by signal 11"),
    ],
)
def test_without_an_answer_everything_is_unknown(tmp_path: Path, status: str, detail: str) -> None:
    raw = {"status": status, "detail": detail, "executable": "/x/python", "chosen_by": "--python"}
    section = collect(machine(tmp_path, answers={"worker.json": raw}), TargetWish())
    assert section.status == status
    assert section.executable == "/x/python"
    assert section.sys_path is None
    assert section.problem("sys_path") == detail


def test_a_machine_without_a_recorded_target(tmp_path: Path) -> None:
    section = collect(machine(tmp_path), TargetWish())
    assert section.status is None
    assert section.problem("version")


def test_others_are_those_with_torch_on_disk(tmp_path: Path) -> None:
    version = "__version__ = '2.6.0+cu124'\ncuda = '12.4'\n"
    others = [
        {"executable": "/opt/conda/bin/python", "prefix": "/opt/conda", "chosen_by": "conda"},
        {"executable": "/usr/bin/python3", "prefix": "/usr", "chosen_by": "PATH"},
        {"executable": "/home/user/empty/bin/python", "prefix": "/home/user/empty",
         "chosen_by": "venv"},
    ]  # fmt: skip
    files = {
        "/opt/conda/lib/python3.10/site-packages/torch/version.py": version,
        "/usr/lib/python3/dist-packages/torch/version.py": "not python (",
        "/home/user/empty/lib/python3.10/site-packages/numpy/version.py": "",
    }
    section = taken(tmp_path, files=files, others=others)
    assert section.others is not None
    assert [
        (other_interpreter.executable, other_interpreter.torch)
        for other_interpreter in section.others
    ] == [
        ("/opt/conda/bin/python", "2.6.0+cu124"),
        ("/usr/bin/python3", None),
    ]


def test_whether_gpucheck_is_in_it(tmp_path: Path) -> None:
    assert taken(tmp_path / "without", answer=ANSWER).has_gpucheck is False
    own = {f"{SITE}/gpucheck/__init__.py": ""}
    assert taken(tmp_path / "with", answer=ANSWER, files=own).has_gpucheck is True
