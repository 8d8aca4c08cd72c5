"""What readers take from one requirement, whatever kind of file it stands in."""

import pytest
from each import each

from gpucheck.describe.files import dependencies
from gpucheck.describe.files.model import NamedIndex, Pin, version_of
from gpucheck.describe.files.text import documents

pytest.importorskip("yaml")


@each(
    ("specifier", "version"),
    [
        ("==2.6.0", "2.6.0"), ("=== 2.6.0", "2.6.0"), ("(==2.6.0+cu124)", "2.6.0+cu124"),
        ("", ""), ("*", ""), ("==2.6.*", ""), (">=2.6.0", ""), ("==2.6.0,<3", ""), ("2.6.0", ""),
    ],
)  # fmt: skip
def test_only_one_exact_version_is_a_version(specifier: str, version: str) -> None:
    assert version_of(specifier) == version


@each(("asked", "version"), [("==2.6.0", "2.6.0"), ("==2.6.*", ""), ("2.6.0", ""), ("*", "")])
def test_a_package_of_pixi_keeps_its_name(asked: str, version: str) -> None:
    (install,) = dependencies.read_pixi(f'[pypi-dependencies]\ntorch = "{asked}"\n').installs
    assert install.pins == (Pin("torch", version, 2),)


@each(
    ("asked", "version"),
    [("2.6.0", "2.6.0"), ("==2.6.0", "2.6.0"), ("2.6.*", ""), (">=2.6.0", ""), ("=2.6.0", "")],
)
def test_conda_of_pixi(asked: str, version: str) -> None:
    (install,) = dependencies.read_pixi(f'[dependencies]\npytorch = "{asked}"\n').installs
    assert install.pins == (Pin("torch", version, 2),)


def test_a_build_for_the_cpu_in_pixi() -> None:
    table = '[dependencies]\npytorch = {version = "2.6.0", build = "cpu_generic*"}\n'
    (install,) = dependencies.read_pixi(table).installs
    assert install.cpu == Pin("pytorch=2.6.0=cpu_generic*", "", 2)


def test_the_pip_of_conda_has_packages_and_indexes() -> None:
    text = (
        "dependencies:\n- pytorch=2.5.1\n- pip:\n  - --extra-index-url https://a.example/whl\n"
        "  - torch==2.6.0  # newer\n  - -r other.txt\n"
    )
    (install,) = dependencies.read_conda_env(documents(text)).installs
    assert install.pins == (Pin("torch", "2.6.0", 5),)
    assert install.indexes == (NamedIndex("https://a.example/whl", 4, "extra"),)


def test_a_line_of_conda_that_goes_on_nowhere_is_what_it_says() -> None:
    text = 'dependencies:\n- pip:\n  - "torch\\\\"\n'
    (install,) = dependencies.read_conda_env(documents(text)).installs
    assert install.pins == ()
