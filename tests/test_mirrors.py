"""Mirrors that a user has configured, or named, in the commands of fixes and of ``recommend``."""

import json
from typing import Any

import machine_files
import pytest
from click.testing import CliRunner, Result
from each import each
from msgspec.structs import replace
from rules_machines import (
    NO_VARIABLES,
    PYTHON,
    RTX_4090,
    UBUNTU,
    VENV,
    WINDOWS,
    nvml,
    packages,
    torch_of,
)
from rules_support import TABLES, ask, snapshot

from gpucheck import cli
from gpucheck.advice import TorchFixes
from gpucheck.advice.torch_again import TorchAgain
from gpucheck.doctor.collector import Collector
from gpucheck.engine import judge_machine, supply
from gpucheck.facts import Section
from gpucheck.facts.claims import Fix
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import decode
from gpucheck.facts.torch import Interpreter, PackageSources
from gpucheck.findings.form import Hit
from gpucheck.language import speaking, spoken
from gpucheck.machine import RecordedHost
from gpucheck.machine.candidates import TargetWish
from gpucheck.output import json_text

MIRROR = "https://mirrors.example.cn/simple"
BASE = "https://wheels.corp.example/whl"
CPU = torch_of("2.6.0+cpu")  # PyPI's own build of this release is cu124, which fits
PIP = PackageSources(pip_index=MIRROR, pip_extra_indexes=[], uv_index="", conda_channels=[])
UV = PackageSources(pip_index="", pip_extra_indexes=[], uv_index=MIRROR, conda_channels=[])
OF_UV = Interpreter(
    status="ok", executable=PYTHON, version="3.12.4", kind="uv", has_pip=False, prefix="/v"
)
PLAIN = "torch==2.6.0"
NAMED = f"{PLAIN} --index-url https://download.pytorch.org/whl/cu124"


def fix(*sections: Section, python: Interpreter = VENV, torch: Section = CPU) -> Fix:
    facts = snapshot(NO_VARIABLES, nvml(RTX_4090), UBUNTU, python, torch, *sections)
    advice: TorchFixes = supply(TorchFixes, facts, TABLES)
    made = advice.install()
    assert made is not None
    return made


def last(*sections: Section, python: Interpreter = VENV) -> str:
    return fix(*sections, python=python).commands[-1]


def test_pips_own_mirror_is_used_and_named_in_a_sentence() -> None:
    made = fix(PIP)
    assert made.commands[-1] == f"{PYTHON} -m pip install {PLAIN}"
    assert f"pip is configured to use {MIRROR}, so it takes PyTorch from there." in made.text
    with speaking("zh"):
        assert f"pip 已配置使用 {MIRROR}" in spoken(made.text)


def test_without_a_configuration_nothing_changes() -> None:
    nothing = PackageSources(pip_index="", pip_extra_indexes=[], uv_index="", conda_channels=[])
    for sections in ((), (nothing,), (PackageSources(problems={"*": "unknown"}),)):
        made = fix(*sections)
        assert made.commands[-1].endswith(NAMED)
        assert "configured" not in made.text


@each(
    "sources",
    [
        PackageSources(pip_index="https://m.example/pytorch-wheels/simple", pip_extra_indexes=[]),
        PackageSources(pip_index="https://pytorch.m.example/simple", pip_extra_indexes=[]),
        PackageSources(pip_index="https://m.example/whl/cu128", pip_extra_indexes=[]),
        PackageSources(pip_index=MIRROR, pip_extra_indexes=["https://m.example/whl/cu118"]),
        PackageSources(pip_index=MIRROR),
        PackageSources(pip_index="https://m.example/](x) y/simple", pip_extra_indexes=[]),
        UV,
    ],
)
def test_what_may_have_other_builds_is_no_mirror_of_pypi(sources: PackageSources) -> None:
    assert last(sources).endswith(NAMED)


def test_a_second_mirror_of_pypi_does_no_harm() -> None:
    second = PackageSources(pip_index=MIRROR, pip_extra_indexes=["https://m.example/pypi/simple"])
    assert last(second).endswith(f"install {PLAIN}")


def test_another_build_than_pypis_keeps_its_index() -> None:
    windows = snapshot(NO_VARIABLES, nvml(RTX_4090), WINDOWS, VENV, CPU, PIP)
    made = supply(TorchFixes, windows, TABLES).install()
    assert "--index-url https://download.pytorch.org/whl/cu" in made.commands[-1]
    assert "configured" not in made.text


def test_uv_counts_for_commands_of_uv_alone() -> None:
    made = fix(UV, python=OF_UV)
    assert made.commands[-1] == f"uv pip install --python {PYTHON} {PLAIN}"
    assert f"uv is configured to use {MIRROR}, so it takes PyTorch from there." in made.text
    assert last(PIP, python=OF_UV).endswith(NAMED.replace("--index-url", "--default-index"))


def test_a_new_environment_does_not_have_the_configuration_of_the_old_one() -> None:
    debian = Interpreter(
        status="ok", executable="/usr/bin/python3", version="3.12.4", kind="system",
        prefix="/usr", externally_managed=True,
    )  # fmt: skip
    own = PackageSources(
        pip_index=MIRROR, pip_extra_indexes=[], sources={"pip_index": "/usr/pip.conf"}
    )
    assert last(own, python=debian).endswith(NAMED)
    made = fix(PIP, python=debian)
    assert made.commands[-1] == f"~/gpu-env/bin/pip install {PLAIN}"
    assert MIRROR in made.text


# A mirror of PyTorch's wheels.


def test_the_wheel_mirror_stands_in_for_pytorchs_index() -> None:
    mirror = Request(wheel_mirror=BASE)
    assert last(mirror).endswith(f"{PLAIN} --index-url {BASE}/cu124")
    assert last(mirror, PIP).endswith(f"install {PLAIN}")


def test_a_reinstallation_and_companions_use_it_as_well() -> None:
    torch = replace(torch_of("2.9.1+cu128"), metadata_version="2.9.1+cu128")
    facts = snapshot(torch, UBUNTU, VENV, Request(wheel_mirror=BASE))
    again = supply(TorchAgain, facts, TABLES).same()
    assert again.commands[-1].endswith(f"torch==2.9.1+cu128 --index-url {BASE}/cu128")
    found = packages(torchvision="0.21.0+cu128")
    answer = ask("torch-companion-mismatch", torch, UBUNTU, VENV, found, Request(wheel_mirror=BASE))
    assert isinstance(answer, Hit)
    assert answer.fixes[0].commands[-1].endswith(f"--index-url {BASE}/cu128")


# recommend

BOX = ("--gpu", "RTX 4090", "--driver", "550", "--python-version", "3.12", "--os", "linux")


def run(*args: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli.gpucheck, args, env=env)


def commands(*args: str, env: dict[str, str] | None = None) -> list[str]:
    done = run("recommend", *BOX, "--arch", "x86_64", "--format", "json", *args, env=env)
    assert done.exit_code == 0, done.output
    found: list[str] = json.loads(done.stdout)["commands"]
    return found


@each("tool", ["pip", "uv"])
def test_recommend_names_the_wheel_mirror(tool: str) -> None:
    (plain,) = commands("--tool", tool)
    option = "--default-index" if tool == "uv" else "--index-url"
    assert f"{option} https://download.pytorch.org/whl/cu12" in plain
    (mirrored,) = commands("--tool", tool, "--wheel-mirror", f"{BASE}/")
    assert mirrored == plain.replace("https://download.pytorch.org/whl", BASE)
    assert commands("--tool", tool, env={"GPUCHECK_WHEEL_MIRROR": BASE}) == [mirrored]


def test_recommend_says_which_mirror_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpucheck.describe.commands import recommend as module  # noqa: PLC0415

    class Collected:
        snapshot = snapshot(NO_VARIABLES, nvml(RTX_4090), UBUNTU, VENV, CPU, PIP)

    monkeypatch.setattr(module, "run_probes", lambda *_args: Collected())
    for release, is_pypis in (("2.6.0+cu124", True), ("2.6.0+cu118", False)):
        found: Any = json.loads(
            run("recommend", "--torch", f"=={release}", "--format", "json").stdout
        )
        assert ("--index-url" in found["commands"][-1]) is not is_pypis
        assert any(MIRROR in note for note in found["notes"]) is is_pypis


@each(
    "address",
    [
        "ftp://m.example/whl",
        "m.example/whl",
        "https://u:p@m.example/whl",
        "https://m.example/a b",
        "https://m.example/whl?token=1",
        "https://m.example/whl;reboot",
        "https://m.example/$(id)",
        "https://",
    ],
)
@each("command", ["check", "recommend", "collect"])
def test_another_address_is_refused_in_one_sentence(command: str, address: str) -> None:
    done = run(command, "--wheel-mirror", address)
    assert done.exit_code == 2
    assert "--wheel-mirror expects a plain address" in done.stderr
    assert address == "https://" or address not in done.stderr


def test_the_folder_of_one_build_is_refused() -> None:
    done = run("recommend", "--wheel-mirror", f"{BASE}/cu128")
    assert done.exit_code == 2
    assert "expects the folder above cu128" in done.stderr


# Reports


def report_of(name: str, instead: str, *, request: Request | None = None) -> str:
    recording = machine_files.copied(name)
    for path, data in recording.files.items():
        if path.endswith("pip.conf"):
            recording.files[path] = data.replace(b"mirrors.example.cn", instead.encode())
    host = RecordedHost(recording)
    collector = Collector(host, TABLES, wish=TargetWish(python=None), request=request or Request())
    return json_text.render(judge_machine(collector.collect().snapshot, TABLES))


def test_pytorchs_own_index_stays_in_a_report_and_a_login_does_not() -> None:
    text = report_of("cpu-build-pip-mirror", "download.pytorch.org/whl")
    assert "https://download.pytorch.org/whl/simple" in text
    assert "hunter2" not in text


def test_any_other_index_has_a_pseudonym_in_a_report() -> None:
    text = report_of("cpu-build-pip-mirror", "index.acme.example/team-x")
    report = json.loads(text)
    assert "acme" not in text
    assert "team-x" not in text
    assert report["snapshot"]["facts"]["package_sources"]["pip_index"].endswith("/simple")
    (fixed,) = (finding for finding in report["findings"] if finding["slug"] == "torch-cpu-only")
    assert report["snapshot"]["facts"]["package_sources"]["pip_index"] in fixed["fixes"][0]["text"]


def test_a_strangers_report_does_not_name_the_index_of_commands() -> None:
    before = snapshot(Request(wheel_mirror=BASE, gpus=2))
    after = decode(json.dumps(before.as_json()).encode()).get(Request)
    assert (after.wheel_mirror, after.gpus) == ("", 2)


def test_a_private_wheel_mirror_has_one_as_well() -> None:
    mirror = Request(wheel_mirror="https://wheels.acme.corp/team-x")
    text = report_of("rocm-build-on-nvidia", "", request=mirror)
    assert "acme" not in text
    assert "team-x" not in text
    assert "/cu128" in text
