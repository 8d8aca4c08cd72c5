"""The tables against two others' numbers: uv's driver table and torch 2.15's own tables.

Numbers of astral-sh/uv@26a9dd4b crates/uv-torch/src/backend.rs and of torch 2.15.0+cu132
torch/cuda/__init__.py. Each difference is explained in docs/tables.md.
"""

import pytest
from each import each

from gpucheck.tables import OperatingSystem, Tables
from gpucheck.tables.compilers import CubinRules, Runs
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.torch import TorchBuilds
from gpucheck.tables.versions import compare, numbers

UV: dict[str, tuple[str, str]] = {
    "13.2": ("580", "580"),
    "13.0": ("580", "580"),
    "12.9": ("525.60.13", "528.33"),
    "12.8": ("525.60.13", "528.33"),
    "12.6": ("525.60.13", "528.33"),
    "12.5": ("525.60.13", "528.33"),
    "12.4": ("525.60.13", "528.33"),
    "12.3": ("525.60.13", "528.33"),
    "12.2": ("525.60.13", "528.33"),
    "12.1": ("525.60.13", "528.33"),
    "12.0": ("525.60.13", "528.33"),
    "11.8": ("450.80.2", "452.39"),
    "11.7": ("450.80.2", "452.39"),
    "11.6": ("450.80.2", "452.39"),
    "11.5": ("450.80.2", "452.39"),
    "11.4": ("450.80.2", "452.39"),
    "11.3": ("450.80.2", "452.39"),
    "11.2": ("450.80.2", "452.39"),
    "11.1": ("450.80.2", "452.39"),
    "11.0": ("450.36.6", "451.22"),
    "10.2": ("440.33", "441.22"),
    "10.1": ("418.39", "418.96"),
    "10.0": ("410.48", "411.31"),
    "9.2": ("396.26", "398.26"),
    "9.1": ("390.46", "391.29"),
    "9.0": ("384.81", "385.54"),
    "8.0": ("375.26", "376.51"),
}
UV_DIFFERS: dict[tuple[str, OperatingSystem], str] = {
    ("13.2", "linux"): "580.65.06",
    ("13.0", "linux"): "580.65.06",
    **{(f"12.{cuda}", "windows"): "527.41" for cuda in (9, 8, 6, 5, 4, 3, 2, 1, 0)},
    ("9.2", "windows"): "397.44",
    ("8.0", "linux"): "367.48",
    ("8.0", "windows"): "369.30",
}

CODE_OF_RELEASES: dict[str, dict[str, set[int]]] = {
    "12.6": {"linux_x86_64": {50, 60, 70, 75, 80, 86, 90}, "linux_aarch64": {80, 90}},
    "13.0": {
        "linux_x86_64": {75, 80, 86, 90, 100, 120},
        "linux_aarch64": {80, 90, 100, 110, 120},
    },
    "13.2": {
        "linux_x86_64": {75, 80, 86, 90, 100, 120},
        "linux_aarch64": {80, 90, 100, 110, 120},
    },
    "13.4": {
        "linux_x86_64": {75, 80, 86, 90, 100, 120},
        "linux_aarch64": {80, 90, 100, 110, 120},
    },
}
# Builds in torch's hint that the tables do not have as published in 2.15: see docs/tables.md.
HINTED_ONLY = {
    ("12.6", "linux_x86_64"),
    ("12.6", "linux_aarch64"),
    ("13.0", "linux_x86_64"),
    ("13.0", "linux_aarch64"),
    ("13.4", "linux_x86_64"),
    ("13.4", "linux_aarch64"),
}

# Code -> capabilities it does not run on although the major and the minor would allow it.
EXCLUDED: dict[int, set[int]] = {
    50: {53},
    52: {53},
    60: {62},
    61: {62},
    70: {72},
    80: {87},
    86: {87},
    100: {101},
}
ALLOWED_FROM_13_2 = {70: 72, 80: 87, 86: 87}
ONLY: dict[int, set[int]] = {
    53: {53},
    62: {62},
    72: {72},
    87: {87},
    101: {101, 110},
    110: {101, 110},
}
OPEN = (75, 89, 90, 103, 120, 121)
DEVICES = (50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 110, 120, 121)


@each("cuda", UV)
@each("os", ["linux", "windows"])
def test_drivers_are_those_of_uv(tables: Tables, cuda: str, os: OperatingSystem) -> None:
    ours = tables.get(CudaDrivers).oldest_driver(cuda, os)
    assert ours is not None
    uv = UV[cuda][0 if os == "linux" else 1]
    if (cuda, os) in UV_DIFFERS:
        assert ours == UV_DIFFERS[(cuda, os)]
        assert compare(numbers(ours), numbers(uv)) != 0
    else:
        assert compare(numbers(ours), numbers(uv)) == 0


@pytest.mark.parametrize("release", ["2.14", "2.15"])
def test_code_in_builds_is_what_torch_says_of_them(tables: Tables, release: str) -> None:
    for cuda, by_platform in CODE_OF_RELEASES.items():
        for platform, expected in by_platform.items():
            row = tables.get(TorchBuilds).build(release, cuda, platform)
            if row is None or not row.arch_list:
                assert release == "2.15" or cuda == "13.4"
            else:
                assert {int(code[3:]) for code in row.arch_list} == expected, (cuda, platform)


def test_builds_that_only_the_hint_of_torch_names(tables: Tables) -> None:
    unpublished = {
        (cuda, platform)
        for cuda, by_platform in CODE_OF_RELEASES.items()
        for platform in by_platform
        if tables.get(TorchBuilds).available("2.15", cuda, platform) is not True
    }
    assert unpublished == HINTED_ONLY


def _runs(code: int, device: int, *, from_13_2: bool) -> bool:
    """Return what torch's table says."""
    if code in ONLY:
        return device in ONLY[code]
    if from_13_2 and ALLOWED_FROM_13_2.get(code) == device:
        return True
    same_major = code // 10 == device // 10 and device >= code
    return same_major and device not in EXCLUDED.get(code, set())


@each("code", sorted({*EXCLUDED, *ONLY, *OPEN}))
@each("build", ["12.8", "13.2"])
def test_what_runs_on_what_is_torchs_table(tables: Tables, code: int, build: str) -> None:
    rules = tables.get(CubinRules)
    for device in DEVICES:
        how = rules.how(f"sm_{code}", f"{device // 10}.{device % 10}", build)
        assert (how is Runs.CUBIN) is _runs(code, device, from_13_2=build == "13.2"), device
