"""The plugins of these tests, tried on small tests of their own."""

from pathlib import Path

import pytest
from plugin_tiers import module_tier

_INI = """
[pytest]
markers =
    fast: .
    process: .
    exhaustive: .
    hostile: .
    gate: .
    gpu: .
    every_finding: .
addopts =
    --strict-markers --import-mode=importlib
    -p no:cacheprovider -p no:xdist -p no:hypothesispytest
"""
_TORCH = "sys.audit('import', 'torch', None, [], [], [])"
_PLUGINS = "pytest_plugins = ['plugin_tiers', 'plugin_fast', 'plugin_items', 'plugin_finding']"


@pytest.fixture(name="inner")
def small_suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return an empty suite with our plugins; what it runs must end in this process."""
    pytester.makefile(".ini", pytest=_INI)
    pytester.makeconftest(_PLUGINS)
    return pytester


def test_what_is_not_fast_must_say_so(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        test_starts="import sys\ndef test_it(): sys.audit('subprocess.Popen')",
        test_fixture="import pytest, sys\n@pytest.fixture\ndef one(): sys.audit('os.fork')\n"
        "def test_it(one): pass",
        test_imports=f"import sys\ndef test_it(): {_TORCH}",
        test_module=f"import sys\n{_TORCH}",
        test_says_so="import pytest, sys\npytestmark = pytest.mark.process\n"
        f"{_TORCH}\ndef test_it(): sys.audit('os.fork')",
    )
    ran = inner.runpytest_inprocess("--continue-on-collection-errors")
    ran.assert_outcomes(passed=1, failed=2, errors=2)
    ran.stdout.fnmatch_lines_random(
        [
            "*this one starts a process (subprocess.Popen, *: mark it.",
            "*this one starts a process (os.fork, *: mark it.",
            "*this one imports torch (*: mark it.",
            "*A module without a tier is fast, but test_module.py imports torch *",
            "process *1 tests *",
        ]
    )


def test_one_tier_is_enough(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import pytest\npytestmark = pytest.mark.process\n@pytest.mark.gpu\ndef test_it(): pass"
    )
    inner.runpytest_inprocess().stderr.fnmatch_lines("*has two tiers: process and gpu")


def test_modules_of_another_tier_are_not_even_imported(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        test_slow="import pytest\npytestmark = [\n  pytest.mark.process,\n]\nraise SystemExit",
        test_mixed="import pytest\ndef test_a(): pass\n@pytest.mark.process\ndef test_b(): pass",
    )
    inner.runpytest_inprocess("-m", "fast").assert_outcomes(passed=1, deselected=1)


def test_a_tier_is_read_from_the_text_of_a_module(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text("pytestmark = [pytest.mark.hostile, pytest.mark.skipif(GPU, reason='')]\n")
    assert module_tier(file) == "hostile"
    file.write_text("pytestmark = pytest.mark.every_finding\n")
    assert module_tier(file) is None


def test_of_one_finding_its_rule_and_its_cases_are_run(inner: pytest.Pytester) -> None:
    files = {
        "small/test_rule_nvlink_down": "def test_a(): pass",
        "small/test_rule_gpu_slow": "def test_b(): pass",
        "small/test_all": "import pytest\n@pytest.mark.every_finding\n"
        "@pytest.mark.parametrize('slug', ['gpu-slow', 'nvlink-down'])\ndef test_c(slug): pass\n"
        "def test_d(): pass",
        "small/test_other": "raise SystemExit",
    }  # in a folder: their names are those of tests of ours
    inner.makepyfile(**files)
    ran = inner.runpytest_inprocess("--finding", "nvlink-down")
    ran.assert_outcomes(passed=2, deselected=2)


def test_of_a_loop_over_findings_its_own_items_are_run(inner: pytest.Pytester) -> None:
    loop = "from each import each\n@each('slug', {})\ndef test_it(slug): assert {}\n"
    files = {
        "small/test_rule_nvlink_down": loop.format(["a", "b"], "slug != 'b'"),
        "small/test_all": "import pytest\npytestmark = pytest.mark.every_finding\n"
        + loop.format(["gpu-slow", "nvlink-down"], "slug == 'nvlink-down'"),
        "small/test_others": "import pytest\npytestmark = pytest.mark.every_finding\n"
        + loop.format(["gpu-slow"], "slug"),
        "small/test_unmarked": "import pytest\n"
        + loop.format(["nvlink-down"], "slug")
        + "@pytest.mark.every_finding\n@pytest.mark.parametrize('slug', ['gpu-slow'])\n"
        "def test_marked(slug): pass",
    }
    inner.makepyfile(**files)
    ran = inner.runpytest_inprocess("--finding", "nvlink-down")
    ran.assert_outcomes(passed=1, failed=1, deselected=3)
    ran.stdout.fnmatch_lines("1 of 2 items failed *")  # its own module is run as a whole


def test_a_finding_that_does_not_exist(inner: pytest.Pytester) -> None:
    ran = inner.runpytest_inprocess("--finding", "nvlink-dwon")
    ran.stderr.fnmatch_lines(
        "ERROR: there is no finding called 'nvlink-dwon': did you mean nvlink-down?"
    )
