"""The tool that makes a recorded machine of an environment, on an environment that is made up."""

import sys
from pathlib import Path

import machine_files
import msgspec
import pytest
from elf_support import elf
from test_machines import TABLES

from gpucheck.doctor.collector import Collector
from gpucheck.facts.libraries import Loading
from gpucheck.facts.request import Request
from gpucheck.machine import RecordedHost, Recording
from gpucheck.machine.candidates import TargetWish

pytestmark = pytest.mark.process

record_breakage = pytest.importorskip("record_breakage", reason="tools/ is in the repository alone")
STAND_IN = "/home/ana/project/venv/lib/python3.11/site-packages/torch/__init__.py"
VENV = "/home/ana/project/venv"
SITE = f"{VENV}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
VERSION = bytes((2, 10, 9, 0))


def _environment(folder: Path) -> Path:
    """Make an environment of a torch that needs cuDNN, and of a wheel of cuDNN."""
    if sys.platform != "linux":
        pytest.skip("the loader of Linux")
    site = folder / SITE.removeprefix(f"{VENV}/")
    torch, cudnn = site / "torch", site / "nvidia" / "cudnn" / "lib"
    for place in (folder / "bin", torch / "lib", cudnn):
        place.mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    home = Path(sys.executable).resolve().parent
    (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    beside = "$ORIGIN:$ORIGIN/lib:$ORIGIN/../../nvidia/cudnn/lib"
    for name, needed in (
        ("lib/libtorch_global_deps.so", ("libc.so.6",)),
        ("lib/libc10.so", ("libc.so.6",)),
        ("lib/libtorch_python.so", ("libc10.so", "libcudnn.so.9")),
        (f"_C.{_soabi()}.so", ("libtorch_python.so",)),
    ):
        (torch / name).write_bytes(elf(*needed, soname=Path(name).name, rpath=beside))
    for part, data in (("", {}), ("_graph", {"cudnn_graph_version": VERSION})):
        name = f"libcudnn{part}.so.9"
        (cudnn / name).write_bytes(elf("libc.so.6", soname=name, runpath="$ORIGIN", data=data))
    (torch / "version.py").write_text('__version__ = "2.9.1+cu128"\ncuda = "12.8"\nhip = None\n')
    stand_in = machine_files.load("nccl-wheel-removed").recording.files[STAND_IN]
    (torch / "__init__.py").write_bytes(stand_in)
    for project, version in (("torch", "2.9.1+cu128"), ("nvidia_cudnn_cu12", "9.10.2.21")):
        info = site / f"{project}-{version}.dist-info"
        info.mkdir()
        text = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n\nSecret words\n"
        (info / "METADATA").write_text(text)
        record = f"nvidia/cudnn/lib/libcudnn.so.9,sha256=ab,7\n{project}.py,sha256=cd,9\n"
        (info / "RECORD").write_text(record)
    return folder


def _soabi() -> str:
    return f"cpython-{sys.version_info[0]}{sys.version_info[1]}-x86_64-linux-gnu"


def _recorded(tmp_path: Path, *more: str) -> Recording:
    environment = _environment(tmp_path / "environment")
    head = tmp_path / "head.toml"
    head.write_text('about = "made up"\n[expect]\nverdict = "healthy"\n')
    out = tmp_path / "machines" / "made-up.toml"
    out.parent.mkdir()
    line = [str(environment), str(out), "--head", str(head), *more]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["record_breakage.py", *line])
        assert record_breakage.main() == 0
    made = machine_files.load("made-up", out.parent)
    assert (made.about, made.expect) == ("made up", {"verdict": "healthy"})
    return made.recording


def _loading(machine: Recording) -> Loading:
    wish = TargetWish(python=None)
    host = RecordedHost(machine)
    return Collector(host, TABLES, wish=wish, request=Request()).collect().snapshot.get(Loading)


def test_the_recorded_machine_loads_what_the_environment_does(tmp_path: Path) -> None:
    foreign = tmp_path / "libother.so"
    foreign.write_bytes(elf("libc.so.6", soname="libother.so"))
    options = ["--beside", f"{foreign}=/opt/x/libother.so", "--variable", "LD_LIBRARY_PATH=/opt/x"]
    machine = _recorded(tmp_path, *options)
    found = _loading(machine)
    assert found.problems == {}
    assert [missing for missing in found.missing or () if missing.fatal] == []
    cudnn = next(library for library in found.libraries or () if library.library == "cudnn")
    assert cudnn.path == f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
    assert (cudnn.version, cudnn.found_via, cudnn.owner) == ("9.10.2", "rpath", "wheel")
    assert machine.env["LD_LIBRARY_PATH"] == "/opt/x"
    assert "/opt/x/libother.so" in machine.files
    real = tmp_path / "environment" / SITE.removeprefix(f"{VENV}/") / "torch/lib/libc10.so"
    assert machine.stat[f"{SITE}/torch/lib/libc10.so"].size == real.stat().st_size


def test_nothing_else_of_the_environment_is_kept(tmp_path: Path) -> None:
    machine = _recorded(tmp_path)
    encoded = msgspec.json.encode(msgspec.structs.replace(machine, files={}))
    for text in (encoded, *machine.files.values()):
        assert b"Secret words" not in text
        assert str(tmp_path).encode() not in text
    record = machine.files[f"{SITE}/nvidia_cudnn_cu12-9.10.2.21.dist-info/RECORD"]
    assert record == b"nvidia/cudnn/lib/libcudnn.so.9,sha256=,7\n"


def test_a_torch_whose_preloading_nobody_has_written_down(tmp_path: Path) -> None:
    environment = _environment(tmp_path / "environment")
    init = environment / SITE.removeprefix(f"{VENV}/") / "torch" / "__init__.py"
    init.write_text(init.read_text().replace("cusparselt", "cusomething"))
    with pytest.raises(ValueError, match="write one first"):
        record_breakage.record(record_breakage.Environment(environment), "gtx1650-cu130-ok", {})
