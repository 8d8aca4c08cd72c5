"""In which encoding a text is: UTF-8, UTF-16, or what Windows writes in China, Taiwan and Japan.

UTF-8 with some broken bytes stays UTF-8. Another encoding is taken only if bytes that are no UTF-8
become common characters of its language in it: then chance is ruled out.
"""

import codecs
import io
import re

import msgspec

from gpucheck.facts.streams import Reads

UTF_8 = "utf-8"
_SIMPLIFIED = (
    "的一是不了在有人我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过"
    "发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本"
    "前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很"
    "最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度"
    "门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电"
    "数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马"
    "科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万"
    "取拉格望觉术领共确传师观清今切院让识候带导争运笔令改您请谢吗呢吧啊错误找到失败成功试存储卡显"
    "驱版安装编译训练模型加载器环境依赖库缺少参数异常启停止警告线程节点集群网络连接超已未支持检测查"
    "硬盘磁拒绝访问源输址码冲突更换软包脚项配置测试仍绑块图像任容镜执异步函调属类符文夹档"
)
_TRADITIONAL = (
    "這個們來為國時會對後過說發經麼學現動還進樣開從實軍與長機關點業將兩間問戰頭體見產無話給"
    "門兒東聲員論處義幾認條係氣題爾別變總電數報結務場計許統區隊決馬書聽達強難權設記類據邊張該"
    "規萬覺術領確傳師觀讓識導爭運筆請謝嗎錯誤敗試儲顯驅動裝編譯訓練載環賴庫參異啟線節網絡連"
    "檢測查磁絕訪輸碼衝換軟腳項檔夾執調圖"
)
_COMMON = frozenset(_SIMPLIFIED + _TRADITIONAL)
"""The characters that are most frequent in Chinese, and those that messages of programs have."""
_HIRAGANA = frozenset(map(chr, range(0x3041, 0x3094)))
_PUNCTUATION = frozenset("\u3001\u3002\u300c\u300d\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f")
_CANDIDATES = {
    "gb18030": _COMMON | _PUNCTUATION,
    "cp950": _COMMON | _PUNCTUATION,
    "cp932": _COMMON | _PUNCTUATION | _HIRAGANA,
}
"""The encodings (cp950 is Big5, cp932 Shift-JIS), and what is frequent in a text that has each."""
_SURE, _LEAST = 0.5, 3
"""The share of the foreign characters that must be frequent ones, and how many different ones."""
_FROM_FOREIGN = re.compile(rb"[\x80-\xff][^\n]*")
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_LETTER = re.compile(r"[^\W\d_\x00-\x7f\u30a0-\u30ff]|[\u3001-\u3011\uff01-\uff5e\ufffd]")
"""Letters and punctuation of a language, and bytes without a meaning; no frames, no emoji.

No Katakana either: in Shift-JIS, a letter of Western Europe and one of ASCII are one of them.
"""
_SAMPLE = 64 * 1024
"""Bytes of lines with foreign characters by which the encoding is decided."""
_BROKEN = "\N{REPLACEMENT CHARACTER}"
_UTF_16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NO_CONTROL = frozenset("\t\n\r\f\x1b\x08")
_FEW_CONTROL = 0.01
_PART = 64 * 1024
"""Bytes that are read at a time."""


class Decoder:
    """Decodes the blocks of a text; the first that is no UTF-8 decides the encoding of all."""

    def __init__(self) -> None:
        self._encoding = ""

    def text(self, data: bytes) -> str:
        """Return a block, which begins and ends between characters, as text."""
        if not self._encoding:
            try:
                return data.decode(UTF_8)
            except UnicodeDecodeError:
                self._encoding = _encoding_of(data)
        return data.decode(self._encoding, "replace")


class Transcoded(io.RawIOBase):
    """A stream of UTF-16 as a stream of UTF-8."""

    def __init__(self, stream: Reads, encoding: str) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer, as far as the next part of the stream goes; 0 at its end."""
        data = b" "
        while data and not self._ready:
            data = self._stream.read(_PART) or b""
            self._ready = self._decoder.decode(data, final=not data).encode(UTF_8, "replace")
        part = self._ready[: len(buffer)]
        self._ready = self._ready[len(part) :]
        buffer[: len(part)] = part
        return len(part)


def utf_16(head: bytes) -> str:
    """Return which UTF-16 a text is that begins like this, "" if it is none."""
    if head.startswith(_UTF_16_BOMS):
        return "utf-16"
    if b"\0" not in head:
        return ""
    units = head[: len(head) // 2 * 2]
    return next(
        (encoding for encoding in ("utf-16-le", "utf-16-be") if _is_utf_16(units, encoding)), ""
    )


def _is_utf_16(units: bytes, encoding: str) -> bool:
    """Whether these are letters in this order of bytes: ASCII, or mostly frequent ones of Asia."""
    text = units.decode(encoding, "replace")
    plain = sum(char.isascii() for char in text)
    control = sum(char < " " and char not in _NO_CONTROL for char in text)
    if "\0" in text or plain < _LEAST or control > _FEW_CONTROL * len(text):
        return False
    return plain > _SURE * len(text) or _fit(text, "cp932").share >= _SURE


def _encoding_of(data: bytes) -> str:
    """Return the encoding of a text that is no faultless UTF-8."""
    sample = _sample(data)
    text = sample.decode(UTF_8, "replace")
    broken = text.count(_BROKEN)
    if len(_FOREIGN.findall(text)) - broken >= broken:
        return UTF_8
    fits = {
        encoding: _fit(sample.decode(encoding, "replace"), encoding) for encoding in _CANDIDATES
    }
    best = max(fits, key=lambda encoding: fits[encoding].share)
    return best if fits[best].share >= _SURE and fits[best].different >= _LEAST else UTF_8


def _sample(data: bytes) -> bytes:
    """Return the first lines that have foreign characters, each from the first of these on."""
    lines, length = [], 0
    for found in _FROM_FOREIGN.finditer(data):
        lines.append(found[0])
        length += len(found[0]) + 1
        if length > _SAMPLE:
            break
    return b"\n".join(lines)[:_SAMPLE]


class _Fit(msgspec.Struct, frozen=True):
    """How well a text fits the language of an encoding."""

    share: float
    """The share of the foreign characters that are frequent ones."""
    different: int
    """How many different frequent characters there are."""


def _fit(text: str, encoding: str) -> _Fit:
    foreign = _LETTER.findall(text)
    frequent = [char for char in foreign if char in _CANDIDATES[encoding]]
    return _Fit(len(frequent) / max(1, len(foreign)), len(set(frequent)))
