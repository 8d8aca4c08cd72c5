"""The description of a target interpreter, by real interpreters of many versions."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpucheck.worker

pytestmark = pytest.mark.process

SCRIPT = Path(gpucheck.worker.__file__).with_name("describe.py")
MARK = "0123456789abcdef"
WORTHY = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
TOO_OLD = ("2.7", "3.6", "3.7")


def interpreter(version: str) -> str:
    """Return a real interpreter of that version, skip the test without one."""
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    if not found:
        pytest.skip(f"no Python {version} here")
    return str(found[-1])


def output(
    python: str, *options: str, env: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    return subprocess.run(
        [python, *options, str(SCRIPT), MARK],
        check=False, capture_output=True, text=True, timeout=20, cwd=cwd,
        env={**os.environ, **(env or {})},
    ).stdout  # fmt: skip


def answer(
    python: str, *options: str, env: dict[str, str] | None = None, cwd: Path | None = None
) -> dict[str, Any]:
    answered: dict[str, Any] = json.loads(output(python, *options, env=env, cwd=cwd).split(MARK)[1])
    return answered


@pytest.mark.parametrize("version", WORTHY)
def test_real_interpreters_describe_themselves(version: str, tmp_path: Path) -> None:
    python = interpreter(version)
    description = answer(python, cwd=tmp_path)["description"]
    assert description["version"].startswith(f"{version}.")
    assert description["executable"] == python
    assert description["prefix"] == str(Path(python).parents[1])
    assert description["sys_path"][0] == str(tmp_path)
    assert str(SCRIPT.parent) not in description["sys_path"]
    assert description["implementation"] == "cpython"
    assert description["bits"] == 64
    assert description["free_threaded"] is False
    assert description["has_pip"] is True
    assert description["site_packages"]
    assert description["soabi"].startswith("cpython-" + version.replace(".", ""))


@pytest.mark.parametrize("version", TOO_OLD)
def test_old_interpreters_say_that_they_are_too_old(version: str) -> None:
    assert answer(interpreter(version))["too_old"].startswith(version)


def test_it_agrees_with_the_standard_library() -> None:
    questions = (
        "import json, platform, site, sys, sysconfig; print(json.dumps({"
        "'platform': sysconfig.get_platform(), 'glibc': platform.libc_ver()[1], "
        "'soabi': sysconfig.get_config_var('SOABI'), 'user_site': site.getusersitepackages(), "
        "'prefix': sys.prefix, 'base_prefix': sys.base_prefix}))"
    )
    truth = json.loads(subprocess.check_output([sys.executable, "-c", questions]))
    description = answer(sys.executable)["description"]
    assert {name: description[name] for name in truth} == truth


def test_only_the_standard_library_and_the_grammar_of_3_8() -> None:
    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 8))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported == {"os", "sys", "sysconfig", "_imp"}
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))


def test_safe_path_keeps_the_current_folder_out(tmp_path: Path) -> None:
    description = answer(interpreter("3.11"), "-P", cwd=tmp_path)["description"]
    assert str(tmp_path) not in description["sys_path"]


def test_a_removed_current_folder(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    python = interpreter("3.10")  # newer ones do not even start there
    script = f"mkdir {folder}; cd {folder}; rmdir {folder}; exec {python} {SCRIPT} {MARK}"
    out = subprocess.check_output(["/bin/sh", "-c", script], text=True)
    paths = json.loads(out.split(MARK)[1])["description"]["sys_path"]
    assert not any(path.startswith((str(folder), str(SCRIPT.parent))) for path in paths)


def test_pythonpath_and_user_site_count(tmp_path: Path) -> None:
    description = answer(sys.executable, env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path.parent)
    assert str(tmp_path) in description["description"]["sys_path"]


def test_a_link_to_the_script_is_no_folder_of_the_user(tmp_path: Path) -> None:
    link = tmp_path / "describe.py"
    link.symlink_to(SCRIPT)
    out = subprocess.check_output([sys.executable, str(link), MARK], text=True, cwd="/")
    assert json.loads(out.split(MARK)[1])["description"]["sys_path"][0] == "/"


def customised(folder: Path, text: str) -> str:
    (folder / "sitecustomize.py").write_text(text)
    return output(sys.executable, env={"PYTHONPATH": str(folder)})


@pytest.mark.parametrize(
    "text",
    [
        "print('{\"version\": 1}')",
        "raise RuntimeError('broken')",
        "import sys; sys.stdout = None",
        "import site; site.getsitepackages = None",
        "import sys; sys.path.append(7); sys.path.append('/tmp/\\udcff\\u2603\\U0001f600')",
    ],
    ids=["prints", "raises", "no stdout", "broken site", "odd path"],
)
def test_an_answer_in_spite_of_sitecustomize(tmp_path: Path, text: str) -> None:
    description = json.loads(customised(tmp_path, text).split(MARK)[1])["description"]
    assert description["version"]


def test_characters_beyond_ascii(tmp_path: Path) -> None:
    text = "import sys; sys.path.append('/tmp/\"\\\\\\n\\udcff\\u2603\\U0001f600')"
    description = json.loads(customised(tmp_path, text).split(MARK)[1])["description"]
    assert description["sys_path"][-1] == '/tmp/"\\\n\ufffd\u2603\U0001f600'


def test_a_sitecustomize_that_exits_leaves_no_answer(tmp_path: Path) -> None:
    assert MARK not in customised(tmp_path, "import os; os._exit(0)")


def test_without_site() -> None:
    description = answer(sys.executable, "-S")["description"]
    assert description["site_packages"] == []
    assert description["user_site_enabled"] is False
