"""torch's metadata: its own dist-info, its installer, and what was left behind."""

import msgspec

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, join, name, parent, pattern
from gpucheck.probes.torch.reading.conda import CondaRecord
from gpucheck.probes.torch.reading.dist_info import DistInfo, header, installer, values
from gpucheck.probes.torch.reading.files import MAX_ENTRIES, TorchFiles, version_facts
from gpucheck.probes.torch.reading.wheel_records import recorded_libraries

_LEFT_BY_PIP = ("~[o~.=-]rch", "~[o~.=-]rch-*")
"""pip renames a package to one of these before it removes it."""
_CONDA_NAMES = ("pytorch", "pytorch-gpu", "pytorch-cpu", "libtorch")
_MANY = 2
_OF_TESTS = ("test", "backend_with_compiler", "aoti_custom_ops")
"""Of the libraries that only PyTorch's own tests load, which slim images leave out."""


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """What was installed along with one torch package."""

    host: Host
    package: TorchFiles
    info: DistInfo | None
    infos: list[DistInfo]
    """Every distribution of the target."""
    conda: list[CondaRecord]

    @classmethod
    def of(
        cls, host: Host, package: TorchFiles, infos: list[DistInfo], conda: list[CondaRecord]
    ) -> "Own":
        """Return the metadata next to the package; of several, the one that fits its version."""
        beside = [i for i in infos if i.project == "torch" and i.entry == package.entry]
        if len(beside) >= _MANY:
            facts = version_facts(host, join(package.path, "version.py")).value
            public = (facts.version or "").partition("+")[0] if facts is not None else ""
            beside.sort(key=lambda info: info.version.partition("+")[0] != public)
        info = beside[0] if beside else None
        return cls(host=host, package=package, info=info, infos=infos, conda=conda)

    def version(self) -> Answer[str]:
        """Return the version in the metadata."""
        if self.info is None:
            return Answer(None, self.package.entry, say("there is no metadata of torch"))
        if self.info.version:
            return Answer(self.info.version, self.info.path)
        return header(self.host, self.info).map(lambda lines: _first(values(lines, "Version")))

    def installer(self) -> Answer[str]:
        """Return the installer of torch; "" if the metadata names none."""
        signed = Answer("", self.package.entry)
        if self.info is not None:
            signed = installer(self.host, self.info)
        if signed.value == "":
            record = next((r for r in self.conda if r.project in _CONDA_NAMES), None)
            if record is not None:
                return Answer("conda", record.path)
        return signed

    def wheel_tag(self) -> Answer[str]:
        """Return the tag of the wheel; "" if it was not installed from a wheel."""
        if self.info is None:
            return Answer(None, self.package.entry, say("there is no metadata of torch"))
        text = self.host.read(join(self.info.path, "WHEEL"), 16 * 1024)
        return text.map(lambda text: _first(values(text.splitlines(), "Tag"))).absent("")

    def lost_libraries(self) -> Answer[list[str]]:
        """Return which libraries of ``torch/lib`` are in the RECORD and not there."""
        if self.info is None:
            return Answer(None, self.package.entry, say("there is no metadata of torch"))
        lib = join(self.package.path, "lib")
        there = self.host.listing(lib)
        if there.value is None:
            return Answer(None, there.source, there.problem)
        here = frozenset(there.value)
        return recorded_libraries(self.host, self.info).map(
            lambda found: [
                library
                for file in found
                if parent(file.path) == lib
                and (library := name(file.path)) not in here
                and not any(words in library for words in _OF_TESTS)
            ]
        )


def _first(found: list[str]) -> str | None:
    return found[0] if found else None


def leftovers(host: Host, sys_path: list[str], infos: list[DistInfo]) -> list[str]:
    """Return what an interrupted, overwritten or half-removed installation has left."""
    found: list[str] = []
    for entry in distinct(sys_path)[:MAX_ENTRIES]:
        for backup in _LEFT_BY_PIP:
            found += host.glob(pattern(entry, backup)).value or ()
        own = [i for i in infos if i.project == "torch" and i.entry == entry]
        own = [info for info in own if not _is_editable(host, info)]
        if not own:
            continue
        without = host.exists(join(entry, "torch", "__init__.py")).value is False
        if without or len(own) >= _MANY:
            found += [info.path for info in own]
    return found


def editable_installs(host: Host, infos: list[DistInfo]) -> list[str]:
    """Return why torch may be installed although sys.path does not show it."""
    hidden = [i.path for i in infos if i.project == "torch" and _is_editable(host, i)]
    return [
        say("torch is an editable install, which gpucheck does not follow: {path}", path=path)
        for path in hidden
    ]


def _is_editable(host: Host, info: DistInfo) -> bool:
    if info.path.endswith(".egg-info"):
        return False
    direct_url = host.read(join(info.path, "direct_url.json"), 16 * 1024).value or ""
    return '"editable":true' in "".join(direct_url.split())
