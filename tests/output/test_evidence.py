"""Evidence is shortened around what differs, and never hides what the headline names."""

import re

import test_machines
from rules_support import TABLES

from gpucheck.facts.claims import Confidence, Severity
from gpucheck.findings.form import Evidence, Finding
from gpucheck.output import markdown, terminal
from gpucheck.output.evidence import CODES, evidence
from gpucheck.output.words import LONGEST
from gpucheck.tables.error_codes import CudaErrors, NvmlErrors


def test_codes_have_the_names_that_the_tables_give_them() -> None:
    cuda, nvml = TABLES.get(CudaErrors), TABLES.get(NvmlErrors)
    for code, words in CODES["cuda_driver.init_code"].items():
        row = cuda.error(int(code))
        assert row is not None
        assert row.driver == f"CUDA_ERROR_{words.upper().replace(' ', '_')}"
    for code, words in CODES["nvml.init_code"].items():
        error = nvml.error(int(code))
        assert error is not None
        assert error.error == f"NVML_ERROR_{words.upper().replace(' ', '_')}"


def finding(headline: str, **values: object) -> Finding:
    return Finding(
        slug="nvlink-down",
        severity=Severity.WARNING,
        confidence=Confidence.CERTAIN,
        headline=headline,
        evidence=tuple(
            Evidence(fact=f"nvml.gpus.{name[-1]}.{name[:-1]}", value=value, source="NVML")
            for name, value in values.items()
        ),
        fixes=(),
    )


def shown(headline: str, **values: object) -> list[str]:
    (found,) = evidence(finding(headline, **values))
    return [line.value for line in found.lines]


def test_the_links_of_the_bad_and_the_good_gpu_differ() -> None:
    report = test_machines.reported("nvlink-six-links-down")
    text = " ".join(terminal.render(report, verbose=1).split())
    assert "nvml.gpus.3.nvlinks: 12 x yes, 6 x no (NVML)" in text
    assert "nvml.gpus.0.nvlinks: 18 x yes (NVML)" in text
    assert "nvml.gpus.3.nvlinks = 12 x yes, 6 x no" in markdown.render(report)


def test_a_variable_that_is_set_and_empty_is_not_called_missing() -> None:
    text = terminal.render(test_machines.reported("cvd-empty"), verbose=1)
    assert 'environment.variables.CUDA_VISIBLE_DEVICES: "" (' in text
    assert shown("none of them", path0="") == ["none"]


def test_a_possible_cause_that_was_not_the_cause_is_not_explained() -> None:
    (line,) = re.findall(
        r"Explains(.*?)\nFix", terminal.render(test_machines.reported("force-ptx-jit")), re.DOTALL
    )
    assert line.split() == ["selftest-failed,", "cublas-runtime-failure"]


def test_an_extension_that_does_not_fit_is_not_taken_for_pytorch() -> None:
    for name in ("extension-of-other-torch", "extension-without-code-for-gpu"):
        assert "\nBut      PyTorch " in terminal.render(test_machines.reported(name))
    for name in ("torch-py-shadow", "h100x8-r580-cu130"):
        assert "\nBut      PyTorch " not in terminal.render(test_machines.reported(name))


def test_the_ends_of_a_value_among_others_are_seen() -> None:
    pin = {
        "project": "a",
        "specifier": "==1.2",
        "searched": "rpath, default",
        "projects": ["b", "c"],
    }
    (words,) = shown("it is not installed", pins0=pin)
    assert words == ('project=a, specifier="==1.2", searched="rpath, default", projects=[b, c]')


def test_a_process_is_told_by_its_name_and_number() -> None:
    two = [{"pid": 7, "process_name": "python3"}, {"pid": 8, "process_name": "python3"}, {"pid": 9}]
    assert shown("it is held", processes0=two) == ["python3 (pid 7), python3 (pid 8), 9"]


def test_items_that_differ_are_shown_before_others() -> None:
    good = [f"link {number}" for number in range(40)]
    bad = [*good[:33], "link 33 is down", *good[34:]]
    first, second = shown("a link is down", links0=bad, links1=good)
    assert "link 33 is down" in first
    assert "link 33" in second
    assert first.endswith(" and 28 more")
    assert "link 10, ..., link 33 is down and 28" in first


def test_an_item_that_the_headline_names_is_shown() -> None:
    names = [f"package-{letter}" for letter in "abcdefghijklmnopqrstuvw"]
    (words,) = shown("'package-t' does not belong here", packages0=names)
    assert "package-t and 11 more" in words


def test_a_long_text_is_shown_where_it_differs() -> None:
    same = "/opt/" + "x" * 500
    bad, good = shown("they differ", path0=f"{same}/bad/lib", path1=f"{same}/good/lib")
    assert bad.endswith("/bad/lib")
    assert good.endswith("/good/lib")
    assert bad.startswith("...x")
    assert len(bad) <= LONGEST


def test_a_long_text_is_shown_where_the_headline_points() -> None:
    path = ":".join(f"/opt/folder{number}/lib" for number in range(60))
    (words,) = shown("LD_LIBRARY_PATH names /opt/folder47/lib", variable0=path)
    assert "/opt/folder47/lib" in words
    assert len(words) <= LONGEST


def test_what_does_not_matter_is_cut_at_the_end() -> None:
    (words,) = shown("something", text0="y" * 900)
    assert words == "y" * (LONGEST - 3) + "..."
    (words,) = shown("something", numbers0=list(range(15)))
    assert words.endswith("11 and 3 more")
