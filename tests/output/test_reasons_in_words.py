"""What a page says of facts: names of makers, and no status words of a probe."""

from test_machines import reported

from gpucheck.language import say, speaking, spoken
from gpucheck.output import terminal
from gpucheck.output.words import without_status


def page(name: str) -> str:
    return " ".join(terminal.render(reported(name)).split())


def test_a_reason_has_no_status_in_front() -> None:
    silent = say("no answer from {stage} within {seconds:.0f} s", stage="nvmlInit", seconds=30.0)
    why = without_status(say("timed-out: {problem}", problem=silent))
    assert why == without_status("timed-out: no answer from nvmlInit within 30 s") == silent
    with speaking("zh"):
        assert spoken(why) == "nvmlInit 在 30 秒内没有响应"
    assert without_status("not found: timed-out: x") == "not found: timed-out: x"


def test_an_unknown_headline_is_a_sentence() -> None:
    (first, *_more) = terminal.render(reported("nvml-hangs")).partition("Machine")
    assert "timed-out" not in first
    assert "nvml.init_code" not in first


def test_a_named_python_that_is_not_there_is_named() -> None:
    assert "/home/ana/old/venv/bin/python (--python) was not found" in page("python-not-found")


def test_makers_of_displays_have_their_names() -> None:
    assert "(other display controllers: ASPEED, AMD)" in page("amd-rocm-ok")


def test_one_name_of_the_tables_stands_on_a_page() -> None:
    shown = page("newer-than-tables")
    version = shown.partition("gpucheck's tables ")[2].partition(" ")[0]
    assert f"tables {version}, 20" in shown.partition("gpucheck 0.")[2]
