"""The package_sources section: what pip, uv and conda of the user are configured for."""

import configparser
from collections.abc import Mapping
from pathlib import Path

import machine_files
import pytest
from each import each
from support import machine

from gpucheck.doctor.collector import Collector
from gpucheck.facts.request import Request
from gpucheck.facts.secrets import public_address
from gpucheck.facts.torch import Interpreter, PackageSources
from gpucheck.machine import RecordedHost
from gpucheck.machine.candidates import TargetWish
from gpucheck.probes.package_sources import _options, collect
from gpucheck.tables import Tables

HOME = "/home/ana"
VENV = Interpreter(status="ok", prefix="/home/ana/venv", kind="venv")
USER = "/home/ana/.config/pip/pip.conf"
UV = "/home/ana/.config/uv/uv.toml"
RC = "/home/ana/.condarc"
A, B, C = "https://a.example/simple", "https://b.example/simple", "https://c.example/simple"


def sources(
    folder: Path,
    files: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    *,
    os: str = "linux",
    problems: Mapping[str, str] | None = None,
    python: Interpreter = VENV,
) -> PackageSources:
    home = HOME if os == "linux" else r"C:\Users\ana"
    identity = {"os": os, "machine": "x86_64", "home": home}
    host = {"identity": identity, "problems": dict(problems or {})}
    return collect(machine(folder, files=files, env=env, host=host), python)


def of_machine(name: str) -> PackageSources:
    host = RecordedHost(machine_files.copied(name))
    collector = Collector(host, Tables(), wish=TargetWish(python=None), request=Request())
    return collector.collect().snapshot.get(PackageSources)


def conf(index: str, section: str = "global") -> str:
    return f"[{section}]\nindex-url = {index}\n"


def test_nothing_configured_is_known_and_no_lack(tmp_path: Path) -> None:
    found = sources(tmp_path)
    assert (found.pip_index, found.pip_extra_indexes) == ("", [])
    assert (found.uv_index, found.conda_channels) == ("", [])
    assert found.problems == {}


def test_a_machine_with_a_mirror_in_pip_conf() -> None:
    found = of_machine("cpu-build-pip-mirror")
    assert found.pip_index == "https://mirrors.example.cn/simple"
    assert found.source("pip_index") == USER
    assert (found.pip_extra_indexes, found.uv_index, found.conda_channels) == ([], "", [])


def test_a_machine_with_condarc() -> None:
    found = of_machine("conda-cpu-build-mirrors")
    base = "https://mirrors.example.cn/anaconda"
    assert found.conda_channels == [f"{base}/cloud/conda-forge", f"{base}/pkgs/main"]
    assert found.source("conda_channels") == RC
    assert found.pip_index == "https://index.example.cn/pypi/simple"


# pip


@each(
    ("files", "env", "wanted"),
    [
        ({"/etc/pip.conf": conf(A), USER: conf(B)}, {}, B),
        ({USER: conf(A), "/home/ana/venv/pip.conf": conf(B)}, {}, B),
        ({"/home/ana/.pip/pip.conf": conf(A), USER: conf(B)}, {}, B),
        ({"/etc/xdg/pip/pip.conf": conf(A)}, {}, A),
        ({"/home/ana/x/pip/pip.conf": conf(A)}, {"XDG_CONFIG_HOME": "/home/ana/x"}, A),
        ({USER: conf(A, "install"), "/home/ana/venv/pip.conf": conf(B)}, {}, A),
        ({USER: conf(A, "wheel")}, {}, ""),
        ({USER: conf(A)}, {"PIP_INDEX_URL": B}, B),
        ({USER: conf(A)}, {"PIP_CONFIG_FILE": "/dev/null"}, ""),
        ({USER: conf(A)}, {"PIP_CONFIG_FILE": "/own.conf"}, A),
        (
            {USER: conf(A), "/own.conf": "[global]\ntimeout = 9\n"},
            {"PIP_CONFIG_FILE": "/own.conf"},
            "",
        ),
        ({USER: "[global]\nno-index = true\nindex-url = https://a.example/simple\n"}, {}, ""),
        ({USER: "[global]\n# index-url = x\nindex_url: https://a.example/simple/\n"}, {}, A),
    ],
)
def test_pip_ranks_its_files_and_variables(
    tmp_path: Path, files: dict[str, str], env: dict[str, str], wanted: str
) -> None:
    assert sources(tmp_path, files, env).pip_index == wanted


def test_the_active_environment_stands_in_for_an_unknown_prefix(tmp_path: Path) -> None:
    env = {"VIRTUAL_ENV": "/home/ana/other"}
    found = sources(tmp_path, {"/home/ana/other/pip.conf": conf(A)}, env, python=Interpreter())
    assert found.pip_index == A


def test_further_indexes_of_pip(tmp_path: Path) -> None:
    text = (
        "[global]\nextra-index-url =\n    https://a.example/simple\n    https://u:p@b.example/x\n"
    )
    assert sources(tmp_path, {USER: text}).pip_extra_indexes == [A, "https://b.example/x"]
    env = {"PIP_EXTRA_INDEX_URL": f"{B} {C}"}
    assert sources(tmp_path, {USER: text}, env).pip_extra_indexes == [B, C]


def test_pip_on_windows(tmp_path: Path) -> None:
    files = {r"C:\Users\ana\AppData\Roaming\pip\pip.ini": conf(A)}
    python = Interpreter(status="ok", prefix=r"C:\venv", kind="venv")
    assert sources(tmp_path, files, os="windows", python=python).pip_index == A


def test_files_with_the_line_ends_of_windows(tmp_path: Path) -> None:
    home = r"C:\Users\ana"
    files = {
        rf"{home}\AppData\Roaming\pip\pip.ini": f"{conf(A)}extra-index-url =\n  {B}\n  {C}\n",
        rf"{home}\AppData\Roaming\uv\uv.toml": f'index-url = "{B}"\n',
        rf"{home}\.condarc": "channels:\n  - nvidia\n  - r\n",
    }
    files = {path: text.replace("\n", "\r\n") for path, text in files.items()}
    python = Interpreter(status="ok", prefix=r"C:\venv", kind="venv")
    found = sources(
        tmp_path, files, {"APPDATA": rf"{home}\AppData\Roaming"}, os="windows", python=python
    )
    assert (found.pip_index, found.pip_extra_indexes) == (A, [B, C])
    assert (found.uv_index, found.conda_channels) == (B, ["nvidia", "r"])


@each(
    "text",
    [
        "index-url = https://a.example/simple\n",
        "[global]\nindex-url = file:///srv/simple\n",
        "[global]\nindex-url = https://u:p/w@a.example/simple\n",
        "[global]\nx = 1\n" * 8000,
    ],
)
def test_what_pip_conf_says_may_be_unknown(tmp_path: Path, text: str) -> None:
    found = sources(tmp_path, {USER: text})
    assert found.pip_index is None
    assert USER in found.problem("pip_index")
    assert "a.example" not in repr(found)


def test_a_file_that_may_not_be_read_is_no_absence(tmp_path: Path) -> None:
    found = sources(tmp_path, problems={"/etc/pip.conf": "EACCES: Permission denied"})
    assert found.pip_index is None
    assert "EACCES" in found.problem("pip_index")


@each(
    "text",
    [
        "[global]\n  index-url = x\n  timeout = 9\n[install]\nb: 1\n",
        "[global]\na =\n  x\n  # no\n  y\n\n  z\nb = 1\n",
        "[a]\nKey : v = w\n; c\n[b]\nkey=\n",
        "[a]\nx = 1\n\ty\n",
        "[a]\nx = 1\nx = 2\n",
        "x = 1\n",
        "[a]\nno value\n",
    ],
)
def test_options_are_read_as_configparser_reads_them(text: str) -> None:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error:
        with pytest.raises(ValueError, match=r"^$"):
            _options(text)
        return
    wanted = {(part, key): value for part in parser.sections() for key, value in parser.items(part)}
    read = _options(text)
    assert {place: value.split() for place, value in read.items()} == {
        place: value.split() for place, value in wanted.items()
    }


# uv


@each(
    ("text", "wanted"),
    [
        ('index-url = "https://a.example/simple"\n', A),
        ("[pip]\nindex-url = 'https://a.example/simple/'  # near\n", A),
        ('[[index]]\nname = "m"\nurl = "https://a.example/simple"\ndefault = true\n', A),
        ('[[index]]\nname = "m"\nurl = "https://a.example/simple"\n', ""),
        (
            '[[index]]\nurl = "//b"\n[[index]]\nurl = "https://a.example/simple"\ndefault = true',
            A,
        ),
        ('[[find]]\nurl = "https://a.example/simple"\n', ""),
        ('index = [{ url = "https://a.example/simple", default = true }]\n', None),
        ('index-url = """https://a.example/simple"""\n', None),
    ],
)
def test_uv_toml(tmp_path: Path, text: str, wanted: str | None) -> None:
    assert sources(tmp_path, {UV: text}).uv_index == wanted


def test_variables_of_uv_and_the_file_of_the_system(tmp_path: Path) -> None:
    files = {"/etc/uv/uv.toml": f'index-url = "{A}"\n'}
    assert sources(tmp_path, files).uv_index == A
    assert sources(tmp_path, files, {"UV_NO_CONFIG": "1"}).uv_index == ""
    assert sources(tmp_path, files, {"UV_INDEX_URL": B}).uv_index == B
    env = {"UV_INDEX_URL": B, "UV_DEFAULT_INDEX": f"near={C}"}
    assert sources(tmp_path, files, env).uv_index == C


def test_uv_does_not_read_what_pip_reads(tmp_path: Path) -> None:
    assert sources(tmp_path, {USER: conf(A)}, {"PIP_INDEX_URL": B}).uv_index == ""


# conda


@each(
    ("text", "wanted"),
    [
        ("channels:\n- conda-forge\n- nvidia\n", ["conda-forge", "nvidia"]),
        ('channels: [conda-forge, "nvidia"]\n', ["conda-forge", "nvidia"]),
        ("channels: []\nauto_activate_base: false\n", []),
        ("# mine\nchannels:\n  - https://a.example/t/ab-12/x  # near\n",
         ["https://a.example/t/(hidden)/x"]),
        ("default_channels:\n  - https://u:p@a.example/main/\n", ["https://a.example/main"]),
        ("proxy_servers:\n  http: http://u:p@b.example\nchannels:\n  - r\n", ["r"]),
        ("channels: &x\n  - r\n", None),
        ("channels:\n  - name: r\n", None),
        ("channels:\n  - /srv/channel\n", None),
        ("channels:\n\t- r\n", None),
        ("custom_channels: {r: https://a.example}\n", None),
    ],
)  # fmt: skip
def test_condarc(tmp_path: Path, text: str, wanted: list[str] | None) -> None:
    found = sources(tmp_path, {RC: text})
    assert found.conda_channels == wanted
    assert wanted is not None or RC in found.problem("conda_channels")


def test_the_environments_own_condarc_comes_first(tmp_path: Path) -> None:
    files = {RC: "channels:\n  - r\n", "/c/.condarc": "channels:\n  - nvidia\n  - r\n"}
    found = sources(tmp_path, files, {"CONDA_PREFIX": "/c"})
    assert found.conda_channels == ["nvidia", "r"]
    assert found.source("conda_channels") == f"/c/.condarc, {RC}"


# What is kept of an address.


@each(
    ("address", "kept"),
    [
        ("HTTPS://Index.Example/simple/", "https://index.example/simple"),
        ("https://user:secret@index.corp:8443/simple", "https://index.corp:8443/simple"),
        ("https://token@index.corp/simple?key=1#x", "https://index.corp/simple"),
        ("https://dl.corp/a1b2c3d4e5f6a7b8c9d0e1f2/simple", "https://dl.corp/(hidden)/simple"),
        ("https://[fe80::1]:80/simple", "https://[fe80::1]:80/simple"),
        ("https://u:a@b@index.corp/simple", ""),
        ("https://index.corp/sim ple", ""),
        ("${INDEX}", ""),
        ("ftp://index.corp/simple", ""),
        ("https://", ""),
    ],
)
def test_no_secret_is_kept(address: str, kept: str) -> None:
    assert public_address(address) == kept


def test_the_constraints_of_the_shell(tmp_path: Path) -> None:
    files = {"/c.txt": "# NVIDIA's\nTorch_Vision==0.20.0\ntorch == 2.4.0+cu124 ; x\nnumpy<2\n"}
    found = sources(tmp_path, files, {"PIP_CONSTRAINT": "/c.txt /gone.txt"})
    assert found.pip_constraints == ["torch-vision==0.20.0", "torch==2.4.0+cu124"]
    assert sources(tmp_path).pip_constraints == []


def test_the_constraints_of_a_configuration_which_a_variable_replaces(tmp_path: Path) -> None:
    files = {
        "/etc/pip.conf": "[global]\nconstraint =\n    /a.txt\n    /b.txt\n",
        "/a.txt": "torch==2.4.0\n",
        "/b.txt": "numpy==1.26.4\n",
    }
    assert sources(tmp_path, files).pip_constraints == ["torch==2.4.0", "numpy==1.26.4"]
    assert sources(tmp_path, files, {"PIP_CONSTRAINT": "/b.txt"}).pip_constraints == [
        "numpy==1.26.4"
    ]
