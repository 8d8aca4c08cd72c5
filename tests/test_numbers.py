"""``"²".isdigit()`` is true and ``int("²")`` raises: one helper reads the numbers of others."""

import ast
from pathlib import Path

import pytest
from each import each
from readers_support import Read
from rules_support import snapshot

import gpucheck
from gpucheck.derived.torch_code import capabilities_of
from gpucheck.describe import keys
from gpucheck.facts.driver import Nvml
from gpucheck.facts.numbers import refuse_long_numbers, signed_number, whole_number
from gpucheck.output.machine_summary import _area_of_selftest

ROOT = Path(gpucheck.__file__).parent
ODD = ["²", "①", "٣²", "9" * 5000, "", "-1", "+1", " 1", "1_0", "0x1", "1e3", "1.0"]
EXCEPT = (
    "facts/numbers.py",
    "machine/sessions.py",  # names in /proc, which the kernel writes
    "worker/sessions.py",  # the same file; the worker shares no code with its parent
    "log_patterns/form.py",  # converts nothing
    "log_patterns/kernel_log.py",  # within Answer.map, which takes a ValueError
)


@each("text", ODD)
def test_what_is_no_number_is_none(text: str) -> None:
    assert whole_number(text) is None


@each(("text", "number"), [("0", 0), ("007", 7), ("9" * 12, 10**12 - 1)])
def test_numbers(text: str, number: int) -> None:
    assert whole_number(text) == number


def test_no_other_place_asks_isdigit_before_int() -> None:
    """``isdecimal`` may ask about a character; with ``int`` it needs a bound on the length, too."""
    for file in ROOT.rglob("*.py"):
        if file.relative_to(ROOT).as_posix() in EXCEPT:
            continue
        text = file.read_text(encoding="utf-8")
        if not any(name in text for name in ("isdigit", "isnumeric", "isdecimal")):
            continue  # 25 modules of 600 are parsed
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef):
                words = set(_called(function))
                assert not words & {"isdigit", "isnumeric"}, f"{file}: {function.name}"
                assert not {"isdecimal", "int"} <= words, f"{file}: {function.name}"


def _called(function: ast.FunctionDef) -> list[str]:
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return [ast.unparse(call).rpartition(".")[2] for call in calls]


@each("mask", ["²", "9" * 5000])
def test_a_pasted_mask_that_is_no_number(mask: str) -> None:
    table = "GPU 0: NVIDIA A100\nRuntimeError: CUDA error: out of memory\n"
    gpucheck.triage(f"CUDA_VISIBLE_DEVICES={mask}\n{table}")


@each("cell", ["²", "9" * 30])
def test_a_pasted_table_with_cells_that_are_no_numbers(cell: str) -> None:
    text = (
        "index, name, memory.total [MiB], temperature.gpu\n"
        f"{cell}, NVIDIA A100, {cell} MiB, {cell}\n"
    )
    gpus = Read(text).get(Nvml).gpus or []
    assert [(gpu.index, gpu.memory_total_bytes, gpu.temperature_c) for gpu in gpus] == [
        (0, None, None)
    ]


def test_a_pasted_query_with_counts_that_are_no_numbers() -> None:
    lines = ("Driver Version : 535.104", "GPU 00000000:3B:00.0", "    Volatile",
             "        SRAM Uncorrectable : ²", "    Process ID : ²")  # fmt: skip
    gpucheck.triage("==============NVSMI LOG==============\n" + "\n".join(lines))


def test_codes_of_a_build_that_are_none() -> None:
    assert capabilities_of(("sm_²0", "sm_8²", "sm_", "sm_x", "sm_90a")) == [(9, 0)]


def test_an_index_of_a_selftest_that_is_none() -> None:
    assert _area_of_selftest("²", snapshot()) is None


@each("text", ["0" * 9 + "9" * 5, "²", "9" * 5000])
def test_a_described_count_keeps_its_bound_behind_zeros(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # its caller says what is wrong
        keys._count(text)  # noqa: SLF001


@each("data", [b"[%d]", b'{"a": -%d}', b'{"x": [1, {"y": %d}]}'])
def test_json_with_a_number_of_more_than_64_bits(data: bytes) -> None:
    refuse_long_numbers(data % (2**64 - 1))
    for number in (10**20, 10**400):
        with pytest.raises(ValueError, match="a number of"):
            refuse_long_numbers(data % number)


def test_a_long_number_in_a_text_is_a_word() -> None:
    refuse_long_numbers(b'{"a": "%d"}' % 10**400)


@each(
    ("text", "number"),
    [("-1", -1), ("0", 0), ("12", 12), ("--1", None), ("-", None), ("9" * 23, None), ("²", None)],
)
def test_numbers_with_a_sign(text: str, number: int | None) -> None:
    assert signed_number(text) == number
