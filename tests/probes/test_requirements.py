"""Requirements and their markers, compared with what the packaging library says."""

import re

import pytest
from each import each
from packaging.markers import default_environment
from packaging.requirements import Requirement

from gpucheck.facts.torch import Interpreter
from gpucheck.probes.reading import requirements

ENVIRONMENT = {
    "python_version": "3.11", "python_full_version": "3.11.7", "implementation_name": "cpython",
    "platform_python_implementation": "CPython", "sys_platform": "linux",
    "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64",
}  # fmt: skip
MARKERS = [
    'platform_system == "Linux"',
    "platform_system != 'Linux'",
    'platform_system == "Linux" and python_version < "3.15"',
    'python_version < "3.9" or python_version >= "3.10" and platform_machine == "aarch64"',
    '(python_version < "3.9" or python_version >= "3.10") and platform_machine == "x86_64"',
    'python_version < "3.9" or (python_version >= "3.10" and sys_platform == "darwin")',
    'python_full_version >= "3.11.7"',
    'python_full_version > "3.11"',
    'python_version == "3.11.0"',
    'python_version ~= "3.8"',
    'python_version ~= "4.0"',
    '"3.11" <= python_version',
    "sys_platform in 'linux darwin'",
    "sys_platform not in 'linux darwin'",
    "'lin' in sys_platform",
    'extra == "cublas"',
    'extra == "Cu_Blas"',
    "implementation_name == 'cpython' and os_name == 'posix'",
]


@each("extra", ["", "cublas", "cu-blas"])
@each("marker", MARKERS)
def test_markers_hold_as_packaging_says(marker: str, extra: str) -> None:
    environment = {**ENVIRONMENT, "extra": extra}
    truth = Requirement(f"x; {marker}").marker
    assert truth is not None
    everything = {**{k: str(v) for k, v in default_environment().items()}, **environment}
    assert requirements.holds(marker, environment) is truth.evaluate(everything)


@each(
    "marker",
    [
        "platform_release >= '5'", "python_version <", "(os_name == 'nt'", "python_version << '3'",
        "'a' < 'b'", "os_name ==== 'nt'", "python_version < 'three'", "é == 'x'", "(" * 500,
        "os_name == 'nt' or", "os_name == 'nt' 'nt'", "or " * 300,
    ],
)  # fmt: skip
def test_a_marker_that_is_not_understood(marker: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        requirements.holds(marker, ENVIRONMENT)


@each(
    "line",
    ["triton", "triton==3.1.0", "triton (>=3.0,<4) ; extra == 'x'", "Nvidia_Cuda.Runtime~=1.0",
     "cuda-toolkit[cublas, cu_dart]==13.0.3", "nvidia-cudnn-cu12 >= 9 , < 10"],
)  # fmt: skip
def test_requirements_are_read_as_packaging_reads_them(line: str) -> None:
    ours, theirs = requirements.parse(line), Requirement(line)
    assert ours.project == re.sub(r"[-_.]+", "-", theirs.name).lower()
    assert set(filter(None, ours.specifier.split(","))) == {str(s) for s in theirs.specifier}
    assert set(ours.extras) == {extra.replace("_", "-") for extra in theirs.extras}


@each("line", ["", "==3", "[x]", "; os_name == 'nt'"])
def test_no_requirement(line: str) -> None:
    with pytest.raises(ValueError, match="is not a requirement"):
        requirements.parse(line)


@each(
    ("platform", "machine"),
    [("win-amd64", "AMD64"), ("macosx-14.0-arm64", "arm64"), ("linux-aarch64", "aarch64")],
)
def test_the_environment_of_markers(platform: str, machine: str) -> None:
    environment = requirements.marker_environment(
        Interpreter(version="3.13.0rc1", platform=platform)
    )
    assert environment["platform_machine"] == machine
    assert environment["python_version"] == "3.13"


def test_what_is_unknown_of_the_target_is_not_guessed() -> None:
    assert requirements.marker_environment(Interpreter()) == {"extra": ""}


@each(
    ("specifier", "version"),
    [("==9.1.0.70", "9.1.0.70"), ("==13.2.86.*", "13.2.86"), ("<14,>=13", ""), ("", ""),
     ("===1.0", "1.0"), ("==1,!=2", "")],
)  # fmt: skip
def test_exact_pins(specifier: str, version: str) -> None:
    assert requirements.exact(specifier) == version
