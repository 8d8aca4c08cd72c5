"""PyTorch releases, builds and companions."""

from each import each
from tables.some import some

from gpucheck.tables import Tables
from gpucheck.tables.companions import Package, TorchCompanions
from gpucheck.tables.torch import TorchBuilds, TorchOldDefaults, TorchReleases


def test_of_releases_older_than_the_first_row_nothing_is_known(tables: Tables) -> None:
    table = tables.get(TorchBuilds)
    assert table.oldest("linux_x86_64") == "1.7"
    assert table.oldest("linux_aarch64") == "2.4"
    assert table.oldest("macos_arm64") is None


def test_releases(tables: Tables) -> None:
    table = tables.get(TorchReleases)
    assert table.newest() == "2.15.0"
    assert some(table.release("2.6.0+cu124")).torch == "2.6.0"
    assert some(table.release("2.6")).torch == "2.6.0"
    assert table.release("2.6.0a0+ecf3bae40a.nv25.01") is None
    assert table.release("1.6.0") is None
    assert table.default_build("1.10.0", "linux_x86_64") == "cu102"
    assert table.pythons("2.2.2", "macos_x86_64") == ("3.8", "3.9", "3.10", "3.11", "3.12")
    assert table.pythons("2.3.0", "macos_x86_64") is None
    assert some(table.release("2.5.1")).requires_python == ">=3.8"
    assert table.glibc("2.7.1") == "2.28"
    assert table.glibc("2.5.1") == "2.17"
    assert some(table.release("2.5.1")).cxx11_abi is False
    assert some(table.release("2.7.0")).cxx11_abi is True
    assert table.default_build("2.10.0", "linux_x86_64") == "cu128"
    assert table.default_build("2.10.0", "linux_aarch64") == "cpu"
    assert table.default_build("2.10.0", "windows") == "cpu"
    assert table.default_build("2.10.0", "macos") is None


def test_default_builds_of_old(tables: Tables) -> None:
    """No release is in both tables, so that they cannot contradict each other."""
    table = tables.get(TorchOldDefaults)
    assert table.cuda("1.2.0") == "10.0"
    assert table.cuda("1.3") == "10.1"
    assert table.cuda("1.4.0+cu92") is None
    assert table.cuda("1.6.0") == "10.2"
    assert table.cuda("1.7.1") is None
    assert table.cuda("2.6.0") is None
    assert table.cuda("1.4.0a0+1") is None
    assert all(tables.get(TorchReleases).release(row.torch) is None for row in table.rows)


def test_what_is_newer_than_the_table(tables: Tables) -> None:
    table = tables.get(TorchReleases)
    assert table.knows("2.15.0+cu132")
    assert table.knows("1.10.0")
    assert not table.knows("2.15.1")
    assert not table.knows("2.16.0.dev20261101+cu132")
    assert not table.knows("junk")


def test_pythons(tables: Tables) -> None:
    table = tables.get(TorchReleases)
    assert "3.13t" in some(table.pythons("2.10.0", "linux_x86_64"))
    assert table.pythons("2.1.2", "windows") == ("3.8", "3.9", "3.10", "3.11")
    assert table.pythons("2.1.2", "macos") is None
    assert table.pythons("9.9.9", "windows") is None


@each(
    ("version", "linux", "windows"),
    [
        ("2.2.2", False, False),
        ("2.3.1", True, False),
        ("2.4.0+cu121", True, False),
        ("2.4.1", True, True),
        ("2.99.0", None, None),
    ],
)
def test_numpy2(tables: Tables, version: str, linux: object, windows: object) -> None:
    table = tables.get(TorchReleases)
    assert table.numpy2(version, "linux") is linux
    assert table.numpy2(version, "windows") is windows


def test_builds(tables: Tables) -> None:
    table = tables.get(TorchBuilds)
    expected = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
    assert table.arch_list("2.6.0+cu124", "12.4", "linux_x86_64") == expected
    assert table.arch_list("2.6", "cu124", "linux_x86_64") == expected
    assert some(table.arch_list("2.1.0", "11.8", "windows"))[-1] == "compute_37"
    assert some(table.arch_list("2.8.0", "12.9", "windows"))[0] == "sm_70"
    assert table.arch_list("2.9.0", "12.9", "windows") is None
    assert table.arch_list("2.16.0", "13.4", "linux_x86_64") is None
    assert table.build("2.6.0a0+git", "12.4", "linux_x86_64") is None
    assert table.build("2", "12.4", "linux_x86_64") is None
    assert some(table.build("2.6.0", "12.6", "linux_x86_64")).confirmed is False
    assert some(table.build("2.6.0", "12.6", "linux_x86_64")).glibc == "2.28"


@each(
    ("torch", "cuda", "platform", "expected"),
    [
        ("2.6.0", "12.4", "linux_x86_64", True),
        ("2.10.0", "12.9", "windows", False),
        ("2.15.0", "13.0", "linux_x86_64", None),
        ("2.12.0", "12.9", "linux_x86_64", False),
        ("2.12.1", "12.9", "linux_x86_64", True),
        ("2.12", "12.9", "linux_x86_64", None),
        ("2.9.1", "11.8", "linux_x86_64", False),  # dropped before
        ("2.4.0", "13.0", "linux_x86_64", False),  # newer than the release
        ("1.11.0", "11.5", "linux_x86_64", None),  # exists, and no plan lists its release
        ("1.7.1", "9.2", "windows", None),  # the same
        ("2.13.0", "12.8", "linux_x86_64", None),  # between what is known
        ("2.7.1", "13.0", "linux_aarch64", None),  # of which one build is known
        ("2.15.0", "11.8", "linux_x86_64", None),  # of which nobody has looked at all builds
    ],
)
def test_available(tables: Tables, torch: str, cuda: str, platform: str, expected: object) -> None:
    assert tables.get(TorchBuilds).available(torch, cuda, platform) is expected


def test_companions(tables: Tables) -> None:
    table = tables.get(TorchCompanions)
    assert table.companion_for("2.6.0+cu124", "torchvision") == "0.21.0"
    assert table.companion_for("2.6.0", "torchaudio") == "2.6.0"
    assert table.companion_for("2.14.1", "torchaudio") == "2.11.0"
    assert table.companion_for("2.99.0", "torchvision") is None
    assert table.pin("torchvision", "0.21.0+cu124") == "==2.6.0"
    assert table.pin("torchvision", "0.29.1") == ">=2.14.0"
    assert table.pin("torchaudio", "2.11.0") == ""
    assert table.pin("torchaudio", "2.12.0") is None


@each(
    ("package", "version", "torch", "expected"),
    [
        ("torchvision", "0.21.0+cu124", "2.6.0+cu124", True),
        ("torchvision", "0.21.0", "2.5.1", False),
        ("torchvision", "0.29.2", "2.15.0", True),
        ("torchvision", "0.29.2", "2.13.0", False),
        ("torchaudio", "2.11.0", "2.15.0", True),
        ("torchaudio", "2.11.0", "2.10.0", None),
        ("torchaudio", "2.10.0", "2.11.0", False),
        ("torchvision", "9.9.9", "2.15.0", None),
        ("torchvision", "0.21.0", "2.6.0a0+nv25.01", None),
    ],
)
def test_agrees(
    tables: Tables, package: Package, version: str, torch: str, expected: object
) -> None:
    assert tables.get(TorchCompanions).agrees(package, version, torch) is expected


def test_each_companion_agrees_with_its_torch(tables: Tables) -> None:
    table = tables.get(TorchCompanions)
    for release in tables.get(TorchReleases).rows:
        for package in ("torchvision", "torchaudio"):
            version = some(table.companion_for(release.torch, package))
            assert table.agrees(package, version, release.torch) is True
