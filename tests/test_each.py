"""Loops within tests: what fails is named, what is wanted is run, and nothing else is."""

import pytest

_PLUGINS = "pytest_plugins = ['plugin_tiers', 'plugin_fast', 'plugin_items']"
_MARKERS = ["fast", "process", "exhaustive", "hostile", "gate", "gpu"]
_LOOP = """
from each import each
@each("number", {items}{more})
def test_it(number):
    {check}
"""


@pytest.fixture(name="inner")
def small_suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return an empty suite that knows our loops."""
    lines = "\n    ".join(f"{marker}: ." for marker in _MARKERS)
    options = "--import-mode=importlib -p no:cacheprovider -p no:xdist -p no:hypothesispytest"
    pytester.makefile(".ini", pytest=f"[pytest]\naddopts = {options}\nmarkers =\n    {lines}\n")
    pytester.makeconftest(_PLUGINS)
    return pytester


def _loop(items: str, check: str, more: str = "") -> str:
    return _LOOP.format(items=items, check=check, more=more)


def test_all_items_are_checked_and_each_failure_is_named(inner: pytest.Pytester) -> None:
    inner.makepyfile(_loop("range(5)", "assert number % 2, f'{number} is even'"))
    ran = inner.runpytest_inprocess()
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(
        ["3 of 5 items failed *", "  0", "  2", "  4", "--- 0", "*in test_it", "*0 is even*"]
    )
    ran.stdout.fnmatch_lines(["--- 4", "*4 is even*"])


def test_an_error_and_a_failure_by_name_count_as_well(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        test_inner_error=_loop("[0, 1]", "1 / number"),
        test_inner_failure="import pytest\n"
        + _loop("[0, 1]", "number or pytest.fail('it is none')"),
    )
    ran = inner.runpytest_inprocess()
    ran.assert_outcomes(failed=2)
    ran.stdout.fnmatch_lines_random(["*ZeroDivisionError*", "*it is none*"])


def test_a_loop_without_items_fails(inner: pytest.Pytester) -> None:
    inner.makepyfile(_loop("[]", "pass"))
    ran = inner.runpytest_inprocess()
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines("*there are no items*")


def test_an_item_cannot_be_skipped_unseen(inner: pytest.Pytester) -> None:
    inner.makepyfile("import pytest\n" + _loop("[0, 1]", "number or pytest.skip('no device')"))
    ran = inner.runpytest_inprocess()
    ran.assert_outcomes(failed=1)
    ran.stdout.fnmatch_lines(["1 of 2 *", "skipped (no device), which nobody would see*"])


def test_shards_take_every_item_once(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import pytest\n"
        + _loop("range(7)", "SEEN.append(number)", ", shards=3")
        + "SEEN = []\ndef test_all(): assert sorted(SEEN) == [*range(7)], SEEN"
    )
    inner.runpytest_inprocess().assert_outcomes(passed=4)


def test_items_are_made_when_the_test_runs(inner: pytest.Pytester) -> None:
    inner.makepyfile("def made(): 1 / 0\n" + _loop("made", "pass"))
    inner.runpytest_inprocess("--collect-only").assert_outcomes()
    inner.runpytest_inprocess().assert_outcomes(failed=1)


def test_every_combination_of_two_loops_is_checked(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "from each import each\nSEEN = []\n"
        "@each('one, two', [(1, 2), (3, 4)])\n@each('word', iter('ab'), ids=str.upper)\n"
        "def test_it(word, one, two): SEEN.append((word, one, two)); assert one == 1\n"
        "def test_all(): assert SEEN == [('a', 1, 2), ('a', 3, 4), ('b', 1, 2), ('b', 3, 4)]"
    )
    ran = inner.runpytest_inprocess()
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(["2 of 4 *", "  A-3-4", "  B-3-4"])


def test_an_item_has_fixtures_of_its_own(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import os\nfrom each import each\n"
        "@each('at', range(2))\n"
        "def test_it(at, tmp_path, monkeypatch, capsys):\n"
        "    assert 'GPUCHECK_EACH' not in os.environ\n"
        "    monkeypatch.setenv('GPUCHECK_EACH', '1')\n"
        "    (tmp_path / 'file').touch(exist_ok=False)\n"
        "    print(at)\n"
        "    assert capsys.readouterr().out == f'{at}\\n'\n"
        "    print('left over')\n"
        "def test_after(): assert 'GPUCHECK_EACH' not in os.environ"
    )
    inner.runpytest_inprocess().assert_outcomes(passed=2)


def test_other_marks_and_parameters_stay(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import pytest\nfrom each import each\n"
        "@pytest.mark.hostile\n@each('at', range(2))\n@pytest.mark.parametrize('form', 'xyz')\n"
        "def test_it(at, form): assert (at, form) != (1, 'y')"
    )
    ran = inner.runpytest_inprocess("-m", "hostile")
    ran.assert_outcomes(passed=2, failed=1)
    ran.stdout.fnmatch_lines(["*test_it?y?*", "1 of 2 *"])


def test_one_item_is_chosen_by_its_name(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        test_loop=_loop("['first', 'second']", "assert number == 'second'", ", shards=2"),
        test_single="import pytest\ndef test_second(): pass\ndef test_other(): assert False\n"
        "@pytest.mark.parametrize('it', ['second', 'third'])\ndef test_an(it): assert it[0] == 's'",
    )
    inner.runpytest_inprocess("--item", "second").assert_outcomes(passed=4, deselected=2)
    inner.runpytest_inprocess("--item", "fourth").assert_outcomes(deselected=6)


def test_an_item_is_named_as_it_names_itself(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import enum\nfrom each import each\n"
        "class Kind(enum.Enum):\n    GOOD = 1\n    BAD = 2\n"
        "@each('kind', Kind)\ndef test_enum(kind): assert kind is Kind.GOOD\n"
        "@each('many', [[*range(999)]])\ndef test_list(many): assert not many\n"
        "@each('it', [object()], ids=['of ids'])\ndef test_ids(it): assert not it"
    )
    ran = inner.runpytest_inprocess()
    ran.assert_outcomes(failed=3)
    ran.stdout.fnmatch_lines(["--- BAD", "--- ?0, 1, 2, *", "--- of ids"])
