"""Phrases of the compatibility tables in sentences: they are in the language of the sentence."""

import json
import shutil
from pathlib import Path

import translations
from each import each
from language.english_left import english_left
from rule_facts import HOST, LINUX, address, cuda_fails, hit, nvml_gpu
from rules_machines import VENV
from rules_support import TABLES, ask, snapshot
from selftest_facts import failed, ran
from wheel_facts import loads, nccl, torch_291, wheels

from gpucheck.advice.recommender import Card, Recommender, Situation
from gpucheck.engine.ask import judge
from gpucheck.facts import Section
from gpucheck.facts.driver import KernelLog, Nvml, NvmlGpu, XidEvent
from gpucheck.facts.system import System
from gpucheck.findings import all_rules
from gpucheck.language import as_said, speaking, spoken
from gpucheck.tables import Tables
from gpucheck.tables.check import all_tables

FAULT = "gpu-hardware-fault"
XID_48 = KernelLog(xids=[XidEvent(xid=48, pci_address=address(0), seconds_ago=60.0)])


def gpu(**state: int) -> Nvml:
    return nvml_gpu(NvmlGpu(index=0, device_name="NVIDIA A100-SXM4-80GB", **state))  # type: ignore[arg-type]


@each("phrases", translations.IN_SENTENCES, ids=lambda phrases: phrases.table)
def test_a_field_with_phrases_is_one_of_its_table(phrases: translations.Phrases) -> None:
    rows = TABLES.get(all_tables()[phrases.table]).rows
    in_rows = {getattr(row, phrases.field, None) for row in rows}
    found = set(phrases.found())
    assert found
    assert found <= in_rows


def test_rows_that_no_sentence_mentions_are_left_out() -> None:
    found = {phrase for phrases in translations.IN_SENTENCES for phrase in phrases.found()}
    assert not found & {"ok", "out of memory", "no data", "time-out"}


@each(
    ("slug", "facts", "words"),
    [
        (FAULT, (HOST, XID_48), "Xid 48（双比特 ECC 错误）"),
        (FAULT, (HOST, gpu(handle_code=16)), "GPU 需要重置（NVML 错误 16）"),
        (
            FAULT,
            (HOST, cuda_fails(214)),
            "CUDA 无法启动：执行时出现不可纠正的 ECC 错误（错误 214）",
        ),
        (
            "cudnn-runtime-failure",
            (
                ran(
                    failed(
                        "cudnn-convolution",
                        "cudnn-status",
                        data={"status": "CUDNN_STATUS_EXECUTION_FAILED"},
                    )
                ),
            ),
            "CUDNN_STATUS_EXECUTION_FAILED（内核函数在 GPU 上执行失败）",
        ),
    ],
    ids=["Xid", "NVML", "CUDA", "cuDNN"],
)
def test_a_headline_with_a_phrase_is_chinese(
    slug: str, facts: tuple[Section, ...], words: str
) -> None:
    headline = hit(ask(slug, LINUX, *facts)).headline
    with speaking("zh"):
        shown = spoken(headline)
    assert words in shown
    assert english_left(shown, "") == []


def test_a_fix_that_explains_cuda_error_802_is_chinese() -> None:
    bad = failed("cublas-matmul", "error", data={"cuda_code": 802})
    text = hit(ask("selftest-failed", ran(bad))).fixes[0].text
    assert "required driver daemons" in text
    with speaking("zh"):
        shown = spoken(text)
    assert "系统未就绪：所需的驱动守护进程（NVSwitch 系统上是 Fabric Manager）没有运行" in shown
    assert english_left(shown, "") == []


def test_a_known_fault_of_nccl_is_told_in_chinese() -> None:
    facts = (torch_291(), loads(nccl("2.29.2")), wheels(), VENV, System(machine="aarch64"))
    headline = hit(ask("nccl-version-mismatch", *facts)).headline
    with speaking("zh"):
        assert "在 ARM 上卡住" in spoken(headline)


def test_why_a_list_of_code_is_unconfirmed_is_told_in_chinese() -> None:
    cards = (Card("NVIDIA GeForce GTX 1080", "6.1"),)
    pascal = Situation(cards=cards, platform="windows", driver="580.88")
    notes = Recommender(TABLES).recommend(pascal).notes
    with speaking("zh"):
        assert any("尚未完全确认：没有在 wheel 包中验证" in spoken(note) for note in notes)


def test_programs_get_the_name_of_an_xid_in_english() -> None:
    encoded = as_said(hit(ask(FAULT, LINUX, HOST, XID_48)).headline)
    assert "Double Bit ECC Error" in json.dumps(encoded)


def test_phrases_of_other_tables_stay_english(tmp_path: Path) -> None:
    shutil.copytree(TABLES.directory, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "xid.json"
    text = file.read_text(encoding="utf-8")
    assert text.count('"Double Bit ECC Error"') == 1
    file.write_text(text.replace("Double Bit ECC Error", "Two {bits} at 100 %"), encoding="utf-8")
    answer = judge(all_rules()[FAULT], snapshot(LINUX, HOST, XID_48), Tables(tmp_path))
    with speaking("zh"):
        assert "Xid 48（Two {bits} at 100 %）" in spoken(hit(answer).headline)
