# ruff: noqa: INP001  # a script of this repository
"""Makes a recorded machine of a real environment: its libraries cut, its wheels and its pins.

    tools/record_breakage.py ENVIRONMENT MACHINE --head FILE [--around NAME]
        [--beside FILE=PATH ...] [--variable NAME=VALUE ...]

ENVIRONMENT is a virtual environment or a prefix of conda in which something was broken (or nothing
was, for the healthy twin). Its interpreter, its torch, CUDA's libraries and the extensions that
need one of them are put where the target of the test machine ``--around`` lies, with all that is
around that target. ``--head`` is a file with ``about`` and ``[expect]``, as the new machine says
them. ``--beside`` adds a file at a path of the new machine, ``--variable`` a variable of its
environment. Nothing is written where something of the outcome would be a guess.
"""

import argparse
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import cut_elf
import machine_files
from machine_from_folder import write

from gpucheck.facts.libraries import Loading
from gpucheck.machine import LiveHost, Recording, Stat
from gpucheck.machine.binaries.elf import read_elf
from gpucheck.machine.candidates import TargetWish
from gpucheck.probes import interpreter as interpreter_probe
from gpucheck.probes import loading as loading_probe
from gpucheck.probes import torch_build
from gpucheck.probes.reading.dist_info import dist_infos
from gpucheck.probes.reading.extension_files import FileOwners, candidates
from gpucheck.probes.reading.extension_needs import NeedsReader
from gpucheck.probes.reading.preloading import Preloading, understand
from gpucheck.probes.reading.torch_process import torch_process
from gpucheck.probes.reading.versions import is_cuda, library_name
from gpucheck.tables.base import Tables
from gpucheck.tables.cuda import RuntimeOpens

_SYSTEM = "/usr/lib/x86_64-linux-gnu"
_WHEELS = ("nvidia", "torch-", "triton-", "cuda_")
_NEW_STRINGS = "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_string"
_OLD_STRINGS = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
_HEADERS = {
    "cudnn_version.h": "CUDNN_(?:MAJOR|MINOR|PATCHLEVEL)",
    "nccl.h": "NCCL_(?:MAJOR|MINOR|PATCH|VERSION_CODE)",
}
_VERSION_LINE = re.compile(r"(?:__version__|cuda|hip|xpu|git_version)\b")
_METADATA_LINE = re.compile(
    r"(?:Metadata-Version|Name|Version): |Requires-Dist: (?:torch|nvidia|triton|cuda)"
)
_LIBRARY_LINE = re.compile(r"(?:.*/)?([^/]+\.so[0-9.]*),[^,]*,([0-9]*)")


def main() -> int:
    """Record what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("environment", type=Path)
    parser.add_argument("machine", help="its name, or the path of its file")
    parser.add_argument("--head", type=Path, required=True, metavar="FILE")
    parser.add_argument("--around", default="gtx1650-cu130-ok", metavar="NAME")
    parser.add_argument("--beside", action="append", default=[], metavar="FILE=PATH")
    parser.add_argument("--variable", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    head = machine_files.parsed(arguments.head.read_text(encoding="utf-8"))
    beside = dict(pair.split("=", 1) for pair in arguments.beside)
    recording = record(Environment(arguments.environment), arguments.around, beside)
    recording.env.update(pair.split("=", 1) for pair in arguments.variable)
    about, expect = head["about"], head["expect"]
    file = write(arguments.machine, recording, like=None, about=about, expect=expect)
    sys.stdout.write(f"{file}: {file.stat().st_size} bytes\n")
    return 0


class Environment:
    """What is read of the real environment.

    Raises:
        ValueError: its interpreter or its torch is not understood.
    """

    def __init__(self, folder: Path) -> None:
        self.host = LiveHost()
        self.folder = folder
        self.python = str(folder / "bin" / "python")
        self.interpreter = interpreter_probe.collect(self.host, TargetWish(python=self.python))
        self.torch = torch_build.collect(self.host, self.interpreter)
        process = torch_process(self.host, self.interpreter, self.torch)
        if process.value is None:
            raise ValueError(f"{folder}: {process.problem}")
        self._process = process.value.process
        self.site = Path(self.torch.path or "").parent
        self.program = str(Path(self.python).resolve())
        opens = Tables().get(RuntimeOpens)
        loading = loading_probe.collect(self.host, self.interpreter, self.torch, opens)
        for opened in loading.runtime_opened or ():
            self._process.open(opened.path or opened.soname)  # with what it needs
        self.extensions = self._extensions(loading)

    def folders_of_program(self) -> list[str]:
        """Return the folders that the interpreter's own file names, of the machine at hand."""
        elf = read_elf(self.host, self.program).value
        paths = f"{elf.rpath or ''}:{elf.runpath or ''}" if elf is not None else ""
        return [folder for folder in paths.split(":") if folder.startswith("/")]

    def _extensions(self, loading: Loading) -> dict[str, str]:
        """Return the compiled files that need torch or CUDA, and their distributions' folders.

        Of a package that has others as well one of them is kept: it tells that there are some.
        """
        reader = NeedsReader(self.host, self.torch, self.interpreter, loading)
        owners = FileOwners(self.host, dist_infos(self.host, [str(self.site)]))
        found = {}
        others: dict[str, str] = {}
        files = candidates(self.host, [str(self.site)]).files
        for file in files:
            if reader.read(file) is not None:
                owner = owners.of(file)
                found[file.path] = Path(owner.path).name if owner is not None else ""
            elif read_elf(self.host, file.path).value is not None:
                others.setdefault(file.top, file.path)
        tops = {file.top for file in files if file.path in found}
        return {**found, **{path: "" for top, path in others.items() if top in tops}}

    def libraries(self) -> list[str]:
        """Return the files that are kept, each once: what is loaded, CUDA's, torch's.

        What is broken may end the import early: each library is opened by itself as well.
        """
        own = [str(path) for path in self._own() if not path.is_symlink()]
        own += [str(path) for path in self.site.glob("torch/_C.*.so")]
        for path in own:
            self._process.open(path)
        loaded = [library.real_path for library in self._process.loaded]
        paths = dict.fromkeys([self.program, *loaded, *own, *self.extensions])
        return [path for path in paths if read_elf(self.host, path).value is not None]

    def links(self) -> dict[str, str]:
        """Return the links among torch's and CUDA's libraries, and where they lead."""
        return {str(path): str(path.readlink()) for path in self._own() if path.is_symlink()}

    def _own(self) -> list[Path]:
        places = ("nvidia/*/lib/*.so*", "torch/lib/*.so*")
        there = [path for place in places for path in sorted(self.site.glob(place))]
        there += sorted((self.folder / "lib").glob("*.so*"))
        return [path for path in there if library_name(path.name)]

    def soname(self, path: str) -> str:
        """Return the name by which others need a loaded library; "" for one that is not loaded."""
        found = (
            library.elf.soname for library in self._process.loaded if library.real_path == path
        )
        return next(found, "")


def record(environment: Environment, around: str, beside: dict[str, str]) -> Recording:
    """Return what the machine answers.

    Args:
        environment: what is recorded.
        around: the test machine around it.
        beside: other ELF files, and where they lie on the machine.

    Raises:
        ValueError: a file cannot be read, or no stand-in for torch's ``__init__.py`` is there.
    """
    stand_in = _stand_in(environment)
    machine = _Machine(machine_files.copied(around), environment)
    machine.empty()
    machine.libraries(beside)
    machine.metadata()
    machine.write(machine.place(environment.site / "torch" / "__init__.py"), stand_in)
    machine.finish()
    return machine.recording


def _stand_in(environment: Environment) -> str:
    """Return a recorded ``torch/__init__.py`` that loads what the real one loads.

    Raises:
        ValueError: no recorded machine has one.
    """
    cuda = environment.torch.cuda or None
    wanted = understand((environment.site / "torch" / "__init__.py").read_text(), cuda)
    for name in machine_files.names():
        for path, data in machine_files.load(name).recording.files.items():
            if path.endswith("/torch/__init__.py") and _loads(data.decode(), cuda) == wanted:
                return data.decode()
    raise ValueError(
        f"no recorded torch/__init__.py loads what that of {environment.torch.version} does: "
        f"write one first, by hand, for: {wanted.words()}"
    )


def _loads(text: str, cuda: str | None) -> Preloading | None:
    """Return what a recorded file loads; None if that is not understood, as one of them wants."""
    try:
        return understand(text, cuda)
    except ValueError:
        return None


class _Machine:
    """The machine that is made."""

    def __init__(self, recording: Recording, environment: Environment) -> None:
        self.recording = recording
        self._environment = environment
        answer = (recording.worker or {})["answer"]
        self._prefix: str = answer["prefix"]
        self._old_version: str = answer["version"]
        self._old_tag: str = answer["soabi"].split("-")[1]
        base = answer["base_prefix"]
        self._system = _SYSTEM if base == "/usr" else f"{base}/lib"
        self._moved = dict.fromkeys(environment.folders_of_program(), self._system)

    def place(self, path: Path | str) -> str:
        """Return where a file of the environment lies on the machine."""
        text = str(path)
        if text == self._environment.program:
            return f"{self._prefix}/bin/python"
        for root in (self._environment.folder, self._environment.folder.resolve()):
            if text.startswith(f"{root}/"):
                return self._prefix + text[len(str(root)) :]
        if str(Path(text).parent) in self._moved:
            return f"{self._system}/{Path(text).name}"
        return f"{_SYSTEM}/{Path(text).name}"

    def write(self, path: str, content: bytes | str) -> None:
        """Write a file of the machine."""
        self.recording.links.pop(path, None)
        self.recording.files[path] = content if isinstance(content, bytes) else content.encode()

    def empty(self) -> None:
        """Take the old environment's packages away."""
        self._remove(f"{self._prefix}/lib/")
        records = self._environment.folder / "conda-meta"
        if records.is_dir():
            self._remove(f"{self._prefix}/conda-meta/")
            for file in records.glob("*.json"):
                self.write(self.place(file), file.read_bytes())

    def _remove(self, folder: str) -> None:
        for table in (self.recording.files, self.recording.links, self.recording.stat):
            for path in [path for path in table if path.startswith(folder)]:
                del table[path]

    def libraries(self, beside: dict[str, str]) -> None:
        """Write the libraries, cut, with the sizes that they have in reality."""
        environment = self._environment
        paths = environment.libraries()
        data = cut_elf.cut(
            environment.host,
            [*paths, *(library for library in beside if library not in paths)],
            "^nccl",
            extensions=environment.extensions,
            moved=self._moved,
        )
        for path in paths:
            self._library(path, self.place(self._named(path)), data[path])
        for path, target in environment.links().items():
            self.recording.links[self.place(path)] = target
        for path, place in beside.items():
            self._library(path, place, data[path])

    def _named(self, path: str) -> str:
        """Return the path of a system library under the name by which others need it."""
        if self.place(path).startswith(self._prefix):
            return path
        soname = self._environment.soname(path)
        return str(Path(path).with_name(soname)) if soname else path

    def _library(self, path: str, place: str, data: bytes) -> None:
        elf = read_elf(self._environment.host, path).value
        if elf is not None and not elf.cut_off and not place.startswith(_SYSTEM):
            self.recording.stat[place] = Stat(kind="file", size=elf.size, mode=0o644)
        self.write(place, data + self._searched(Path(place).name))

    def _searched(self, name: str) -> bytes:
        """Return what is searched for in a whole library: it is behind the tables of the file."""
        torch = self._environment.torch
        if name == "libtorch_python.so":
            return b"\0" + " ".join(torch.arch_list or ()).encode() + b"\0"
        if name == "libc10.so" and torch.cxx11_abi is not None:
            return (_NEW_STRINGS if torch.cxx11_abi else _OLD_STRINGS).encode()
        for folder in (_SYSTEM, _SYSTEM.removeprefix("/usr")):
            text = self.recording.files.get(f"{folder}/{name}", b"")
            if text and not text.startswith(b"\x7fELF"):
                return text
        return b""

    def metadata(self) -> None:
        """Write what is read of the distributions, of headers and of torch's version."""
        site = self._environment.site
        owners = set(self._environment.extensions.values())
        for folder in sorted(site.glob("*.dist-info")):
            if folder.name.startswith(_WHEELS) or folder.name in owners:
                self._distribution(folder)
        for header, names in _HEADERS.items():
            for file in sorted(site.glob(f"nvidia/*/include/{header}")):
                lines = _lines(file, re.compile(rf"#define +{names}\b +[0-9]"))
                self.write(self.place(file), lines)
        file = site / "torch" / "version.py"
        self.write(self.place(file), _lines(file, _VERSION_LINE))

    def _distribution(self, folder: Path) -> None:
        self.write(f"{self.place(folder)}/METADATA", _lines(folder / "METADATA", _METADATA_LINE))
        for name, wanted in (("INSTALLER", "pip"), ("WHEEL", "Tag: ")):
            if folder.name.startswith("torch-") and (folder / name).is_file():
                self.write(f"{self.place(folder)}/{name}", _lines(folder / name, wanted))
        record = folder / "RECORD"
        if record.is_file() and folder.name.startswith("nvidia"):
            self.write(f"{self.place(folder)}/RECORD", _recorded(record.read_text()))

    def finish(self) -> None:
        """Write what is known of the machine as a whole: its interpreter, its files' sizes."""
        new = self._environment.interpreter
        major, minor, *_ = (new.version or "").split(".")
        old = self._old_version.rpartition(".")[0]
        old_tag, tag = self._old_tag, (new.soabi or "").split("-")[1]
        text = json.dumps(self.recording.worker)
        for before, after in (
            (f"python{old}", f"python{major}.{minor}"),
            (f"python{old.replace('.', '')}", f"python{major}{minor}"),
            (f"cpython-{old_tag}", f"cpython-{tag}"),
            (f'"{self._old_version}"', f'"{new.version}"'),
        ):
            text = text.replace(before, after)
        self.recording.worker = json.loads(text)
        files = self.recording.files
        config = f"{self._prefix}/pyvenv.cfg"
        if config in files:
            edited = files[config].decode().replace(self._old_version, new.version or "")
            self.write(config, edited.replace(f"python{old}", f"python{major}.{minor}"))
        for name in ("libc.so.6", "libstdc++.so.6"):
            written = f"{_SYSTEM}/{name}"
            other = f"{_SYSTEM.removeprefix('/usr')}/{name}"
            if written in files and other in files:
                files[other] = files[written]


def _lines(file: Path, wanted: re.Pattern[str] | str) -> str:
    """Return the lines that start so; of metadata nothing after the first empty line."""
    head = file.read_text(errors="replace")
    if file.name == "METADATA":
        head = head.partition("\n\n")[0]
    pattern = re.compile(wanted) if isinstance(wanted, str) else wanted
    return "".join(f"{line}\n" for line in head.splitlines() if pattern.match(line))


def _recorded(record: str) -> str:
    """Return the lines of a RECORD about CUDA's libraries, without their hashes."""
    found = (_LIBRARY_LINE.fullmatch(line) for line in record.splitlines())
    return "".join(
        f"{match[0].partition(',')[0]},sha256=,{match[2]}\n"
        for match in found
        if match is not None and is_cuda(match[1])
    )


if __name__ == "__main__":
    sys.exit(main())
