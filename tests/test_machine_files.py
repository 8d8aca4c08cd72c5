"""A test machine is one file; what is wrong in it is said in one sentence."""

from pathlib import Path

import machine_files
import pytest
from each import each
from test_machines import TABLES, judged

from gpucheck.doctor.collector import Collector
from gpucheck.facts.request import Request
from gpucheck.machine import RecordedHost
from gpucheck.machine.candidates import TargetWish

SITE = "/home/ana/project/venv/lib/python3.11/site-packages"
CHANGED = """
like = "r535-cu124"

[instead]
"535.54.03" = "535.183.01"

[absent]
paths = ["/dev/nvidia-uvm*"]
which = ["nvidia-smi"]

[files]
"$site/torch/lib/libtorch_python.so" = "\\u0000_cuda_getArchFlags\\u0000sm_80\\u0000"

[nvml.gpus.0]
compute_mode = 3
"""


def _load(folder: Path, text: str, **others: str) -> machine_files.Machine:
    for name, content in {"new": text, **others}.items():
        (folder / f"{name}.toml").write_text(content, encoding="utf-8")
    return machine_files.load("new", folder)


def test_a_machine_like_another_says_only_what_differs(tmp_path: Path) -> None:
    new = _load(tmp_path, CHANGED).recording
    old = machine_files.load("r535-cu124").recording
    assert new.files[f"{SITE}/torch/lib/libtorch_python.so"].endswith(b"\0sm_80\0")
    assert (new.nvml or {})["gpus"] == [{**(old.nvml or {})["gpus"][0], "compute_mode": 3}]
    assert (new.nvml or {})["driver_release"] == "535.183.01"
    assert "/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01" in new.stat
    assert new.links["/usr/lib/x86_64-linux-gnu/libcuda.so.1"] == "libcuda.so.535.183.01"
    assert old.stat.keys() - new.stat.keys() >= {"/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}
    assert "/dev/nvidia-uvm" in old.open.keys() - new.open.keys()
    assert new.which == {}
    assert (new.env, new.limits, new.worker) == (old.env, old.limits, old.worker)


def test_the_ten_lines_of_the_documentation_are_a_machine(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "machines.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    assert example.count("\n") <= 16
    made = _load(tmp_path, example)
    wish, request = TargetWish(python=None), Request()
    host = RecordedHost(made.recording)
    collected = Collector(host, TABLES, wish=wish, request=request).collect()
    report = judged(collected.snapshot)
    found = {
        "verdict": report.verdict,
        "root_causes": list(report.root_causes),
        "exit": report.exit_status("error"),
    }
    assert found == made.expect


def test_elements_of_a_list_may_be_like_one_before(tmp_path: Path) -> None:
    text = """
like = "r535-cu124"
[nvml.gpus.1]
like = 0
handle = 1
[[cuinit.devices]]
name = "A"
uuid = { null = true }
[[cuinit.devices]]
like = 0
name = "B"
"""
    recording = _load(tmp_path, text).recording
    first, second = (recording.nvml or {})["gpus"]
    assert second == {**first, "handle": 1}
    devices = (recording.cuinit or {})["devices"]
    assert devices == [{"name": "A", "uuid": None}, {"name": "B", "uuid": None}]


def test_a_path_has_one_content(tmp_path: Path) -> None:
    links = 'like = "base/ubuntu"\n[links]\n"/etc/os-release" = "/usr/lib/os-release"\n'
    files = 'like = "linked"\n[files]\n"/etc/os-release" = "ID=x\\n"\n'
    recording = _load(tmp_path, files, linked=links).recording
    assert recording.files["/etc/os-release"] == b"ID=x\n"
    assert "/etc/os-release" not in recording.links


@each(
    ("text", "sentence"),
    [
        ("[file]\n", "new.toml: 'file' is no part of a machine; these are: about, like, "),
        ("files = 1\n", "new.toml: 'files' must be a table"),
        ("[like]\n", "new.toml: 'like' must be a text"),
        ("[files\n", "new.toml: Expected ']'"),
        ('[files]\n"/x" = 1\n', "new.toml: Expected `str`, got `int` - at `$.files[...]`"),
        ('[identity]\nOS = "linux"\n', "new.toml: identity has no 'OS'; it may have: os, release"),
        ('[stat]\n"/x" = { sise = 1 }\n', "new.toml: stat of /x has no 'sise'; it may have: kind"),
        ('[blobs]\n"/x" = "x-0"\n', "new.toml: there is no blob 'x-0'"),
        ('[files]\n"$lib/x" = "x"\n', "new.toml: $lib/x: 'lib' is not in [folders]"),
        ('like = "no-such"\n', "new.toml: there is no machine 'no-such' that it is like"),
        ('like = "new"\n', "new.toml: like goes in a circle: new -> new"),
        ('like = "b"\n', "new.toml: like goes in a circle: new -> b -> new"),
        ('like = "d"\n', "new.toml: new -> d -> c -> a: at most 2 steps of like"),
        (
            'like = "a"\n[absent]\npaths = ["/y"]\n',
            "new.toml: absent: nothing is at /y to begin with",
        ),
        (
            'like = "a"\n[absent]\nsections = ["nvml"]\n',
            "new.toml: absent: no section 'nvml' is there to begin with",
        ),
        (
            'like = "a"\n[absent]\nenv = ["X"]\n',
            "new.toml: absent: no 'X' is there to begin with",
        ),
        ('like = "a"\n[absent]\nfile = ["/x"]\n', "new.toml: absent: 'file' is no section"),
        ('like = "a"\n[instead]\ny = "z"\n', "new.toml: instead: 'y' is nowhere to begin with"),
        (
            'like = "a"\n[nvml.gpus.1]\nname = "x"\n',
            "new.toml: there is no element 0, and so none 1",
        ),
        (
            "[[nvml.gpus]]\nlike = 0\n",
            "new.toml: there is no element 0 that element 0 is like",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    others = {
        "a": '[files]\n"/x" = "x"\n[cuinit]\n',
        "b": 'like = "new"\n',
        "c": 'like = "a"\n',
        "d": 'like = "c"\n',
    }
    with pytest.raises(ValueError, match="toml: ") as raised:
        _load(tmp_path, text, **others)
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


def test_a_machine_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.toml: there is no such machine in "):
        machine_files.load("none", tmp_path)
