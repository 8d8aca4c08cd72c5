"""What is known of packages: of Python's, and of a Linux system's."""

import re

from each import each

from gpucheck.tables import Tables
from gpucheck.tables.companions import ExtensionRow, Extensions, TorchCompanions
from gpucheck.tables.packages import KnownPackages, SystemPackages


def test_names_compare_as_pypi_compares_them(tables: Tables) -> None:
    table = tables.get(KnownPackages)
    row = table.known("flash-attn")
    assert row is not None
    assert row.repository == "Dao-AILab/flash-attention"
    assert table.known("Flash_Attn") is table.known("flash.attn") is row
    assert table.known("acme-kernels") is None
    assert table.known("") is None


def test_each_package_stands_once_by_its_plain_name(tables: Tables) -> None:
    rows = tables.get(KnownPackages).rows
    names = [row.package for row in rows]
    assert names == sorted(set(names))
    for row in rows:
        assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", row.package), row
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", row.repository), row
        assert row.package not in row.unless
        assert bool(row.compiles) >= bool(row.unless), row


def test_how_packages_treat_their_compiled_code(tables: Tables) -> None:
    rows = tables.get(KnownPackages).rows
    assert {row.package for row in rows if row.library_per_cuda} == {"bitsandbytes"}
    assert {row.package for row in rows if row.goes_on_without} == {"torchao"}
    assert {row.package for row in rows if row.for_some_gpus} == {
        "deep-ep", "deep-gemm", "flash-attn-3", "flash-mla", "torchao",
    }  # fmt: skip


def test_what_other_tables_know_is_no_stranger(tables: Tables) -> None:
    known = tables.get(KnownPackages)
    names = {row.package for row in tables.get(Extensions).rows if isinstance(row, ExtensionRow)}
    names |= {"torch", "torchvision", "torchaudio", "torchtext", "triton"}
    assert tables.get(TorchCompanions).rows
    assert [name for name in sorted(names) if known.known(name) is None] == []


def test_what_is_compiled_when_a_package_is_used(tables: Tables) -> None:
    table = tables.get(KnownPackages)
    assert [row.package for row in table.compiling("cuda")] == [
        "deep-gemm", "deepspeed", "flashinfer-python",
    ]  # fmt: skip
    triton = {row.package for row in table.compiling("triton")}
    assert {"vllm", "sglang", "unsloth"} == triton
    assert {row.package for row in table.compiling("triton", "c++")} == {*triton, "deepspeed"}
    flashinfer = table.known("flashinfer-python")
    assert flashinfer is not None
    assert "flashinfer-jit-cache" in flashinfer.unless


@each(
    ("package", "pypi"),
    [
        ("flash-attn", ("source",)),
        ("torch-scatter", ("source",)),
        ("xformers", ("source", "wheel")),
        ("apex", ()),
    ],
)
def test_what_pypi_has_of_a_package(tables: Tables, package: str, pypi: tuple[str, ...]) -> None:
    row = tables.get(KnownPackages).known(package)
    assert row is not None
    assert row.pypi == pypi


@each(
    ("manager", "soname", "package"),
    [
        ("apt", "libgomp.so.1", "libgomp1"),
        ("apt", "libstdc++.so.6", "libstdc++6"),
        ("dnf", "libgomp.so.1", "libgomp"),
        ("yum", "libstdc++.so.6", "libstdc++"),
        ("apt", "libfoo.so.1", None),
        ("pacman", "libgomp.so.1", None),
        (None, "libgomp.so.1", None),
    ],
)
def test_the_package_of_a_library_of_the_system(
    tables: Tables, manager: str | None, soname: str, package: str | None
) -> None:
    assert tables.get(SystemPackages).package(manager, soname) == package
