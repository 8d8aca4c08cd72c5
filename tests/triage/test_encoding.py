"""Encodings: what Windows writes in Asia is read, and nothing else is taken for it."""
# ruff: noqa: RUF001  # other languages have their own punctuation

import io
import random
import time

import pytest
from each import each

from gpucheck import triage
from gpucheck.log_patterns.text import Decoder, Transcoded, utf_16
from gpucheck.ticket.intake import HEAD, Intake

CAUSE = ("driver-library-mismatch",)
LOG = "Failed to initialize NVML: Driver/library version mismatch\n"
ASIAN = {
    "gb18030": (
        "拒绝访问。",
        "找不到指定的模块。",
        "页面文件太小，无法完成操作。",
        "'nvidia-smi' 不是内部或外部命令，也不是可运行的程序\n或批处理文件。",
        "运行训练脚本时报错，请问如何解决？显卡是 RTX 3090，驱动版本 525。",
        'OSError: [WinError 1455] 页面文件太小，无法完成操作。 Error loading "C:\\x.dll"',
    ),
    "cp950": (
        "系統找不到指定的檔案。",
        "'nvidia-smi' 不是內部或外部命令、可執行的程式或批次檔。",
        "驅動程式版本太舊，無法載入模型，請更新顯示卡驅動程式",
    ),
    "cp932": (
        "指定されたファイルが見つかりません。",
        "ドライバーのバージョンが古いため、CUDAを初期化できませんでした。",
    ),
}
SAID = [(encoding, text) for encoding, texts in ASIAN.items() for text in texts]
OTHERS = {
    "Le fichier spécifié est introuvable. Impossible d'exécuter l'opération : mémoire épuisée":
        ("latin-1", "cp1252", "cp850", "cp437", "mac-roman"),
    "âge pâte tâche château bâtiment grâce": ("latin-1", "cp850", "cp437"),
    "Für die Größe fehlt möglicherweise Speicher: überprüfen, ungültig":
        ("latin-1", "cp850", "mac-roman"),
    "Не удалось найти указанный файл. Недостаточно памяти видеокарты, помогите пожалуйста":
        ("cp1251", "koi8-r", "cp866"),
    "지정된 파일을 찾을 수 없습니다. 메모리가 부족합니다.": ("cp949",),
    "指定されたファイルが見つかりません。エラーが発生しました。": ("euc-jp",),
    "Δεν ήταν δυνατή η εύρεση του αρχείου που καθορίστηκε": ("cp1253",),
    "ไม่พบไฟล์ที่ระบุ เกิดข้อผิดพลาดหน่วยความจำไม่พอ": ("cp874",),
    "┌────────┬───────┐\n│ abc │ ███ │\n└────────┴───────┘": ("cp437",),
}  # fmt: skip
NOT_ASIAN = [(text, encoding) for text, encodings in OTHERS.items() for encoding in encodings]


def lines(data: bytes) -> list[str]:
    intake = Intake()
    intake.add_bytes(data)
    return [line.text for line in intake.lines]


@each(("encoding", "text"), SAID)
def test_what_windows_writes_in_asia_is_read(encoding: str, text: str) -> None:
    assert Decoder().text(f"{LOG}{text}\n".encode(encoding)) == f"{LOG}{text}\n"


@each(("text", "encoding"), NOT_ASIAN)
def test_what_is_written_elsewhere_is_not_taken_for_it(text: str, encoding: str) -> None:
    data = f"{LOG}{text}\n".encode(encoding)
    assert Decoder().text(data) == data.decode("utf-8", "replace")


@each(("encoding", "text"), SAID)
def test_utf_8_with_broken_bytes_stays_utf_8(encoding: str, text: str) -> None:
    chance = random.Random(encoding)  # noqa: S311  # the same every time
    for _ in range(40):
        data = bytearray(f"{text}{text}{text}\n".encode())
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(128, 256)
        assert Decoder().text(bytes(data)) == data.decode("utf-8", "replace")


def test_one_broken_byte_spoils_nothing() -> None:
    data = LOG.encode() * 20 + b"50 \xb0C\n" + "显卡\n".encode() + LOG.encode()
    assert lines(data)[21] == "显卡"
    assert triage(data).root_causes == CAUSE


def test_noise_is_no_language() -> None:
    chance = random.Random(5)  # noqa: S311
    for _ in range(500):
        noise = bytes(chance.randrange(128, 256) for _ in range(chance.randrange(1, 40)))
        data = LOG.encode() + noise + b" and more\n"
        assert Decoder().text(data) == data.decode("utf-8", "replace")


def test_the_first_block_that_is_no_utf_8_decides() -> None:
    decoder = Decoder()
    assert decoder.text(LOG.encode()) == LOG
    assert decoder.text("系统找不到指定的文件。\n".encode("gbk")) == "系统找不到指定的文件。\n"
    assert decoder.text("张三\n".encode("gbk")) == "张三\n"


def test_a_chinese_log_that_is_long_is_read_in_its_encoding() -> None:
    filler = "第 7 步，损失 2.0，学习率 3e-4，这一行什么也没有说明\n"
    data = (filler * 60_000 + "系统找不到指定的文件。\n" + LOG).encode("gbk")
    kept = lines(data)
    assert filler.strip().replace("，", ", ") in kept
    assert "系统找不到指定的文件。" in kept


@each("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@each("text", [LOG, f"运行训练脚本时报错，请问如何解决？\n{LOG}"])
def test_utf_16_is_read_with_and_without_its_mark(encoding: str, text: str) -> None:
    assert triage(text.encode(encoding)).root_causes == CAUSE


def test_utf_16_is_read_as_a_stream_to_its_limit() -> None:
    text = "an ordinary line of an ordinary log\n" * 200_000 + LOG
    intake = Intake()
    intake.add_bytes(text.encode("utf-16-le"))
    assert {line.text for line in intake.lines if line.number == 200_001} == {LOG.strip()}
    whole = Transcoded(io.BytesIO(text.encode("utf-16")), "utf-16")
    assert io.BufferedReader(whole).read() == text.encode()


@each(
    "data",
    [b"text\0text", b"text\0text" * 200, b"\x7fELF\2\1\1\0" + b"\0" * 60, b"\0\1\2\3", b"a\0b\0"],
)
def test_a_binary_file_is_no_utf_16(data: bytes) -> None:
    assert utf_16(data) == ""


@pytest.mark.hostile
def test_deciding_takes_linear_time() -> None:
    begun = time.process_time()
    for data in (b"\xb0 " * (HEAD // 16), b"a" * (HEAD // 8) + b"\xff", b"\xff\n" * (HEAD // 16)):
        Decoder().text(data)
    assert time.process_time() - begun < 4
