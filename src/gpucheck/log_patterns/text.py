"""A text as numbered clean lines, in whatever encoding it was, and a search for literals in it."""

import bisect
import codecs
import functools
import io
import itertools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from gpucheck.facts.streams import Reads
from gpucheck.language import say

# In which encoding a text is: UTF-8, UTF-16, or what Windows writes in China, Taiwan and Japan.
#
# UTF-8 with some broken bytes stays UTF-8. Another encoding is taken only if bytes that are no
# UTF-8 become common characters of its language in it: then chance is ruled out.

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
_FEW_CONTROL = 0.01  # chosen: text has hardly any beside those of _NO_CONTROL
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


# An index of a text, which excludes most literals without searching for them.

_SHAPE = bytes.maketrans(b"0123456789", b"0" * 10)
"""Replaces every ASCII digit by 0."""
_LETTERS = bytes(code if chr(code) in "abcdefghijklmnopqrstuvwxyz" else 32 for code in range(256))
"""Replaces every byte that is not an ASCII letter by a blank."""
_FREQUENT = b"0etaoinsrhldcumf/._-gpwybvk"
"""Characters of technical texts, the most frequent first."""
_RARITY = bytes(_FREQUENT.find(code) % 64 for code in range(256))
_PIECE = 4
"""Bytes of a piece; four are converted to a number at once."""
_MOST_IN_PIECES = 32 * 1024
"""Bytes of different words; in more of them most pieces would occur."""

T = TypeVar("T")


class LineShapes:
    """The different lines of a lower-case text, with each digit as 0, and their positions.

    Without their digits the lines of a log are a few that repeat, and only these are searched.
    """

    def __init__(self, lower: str, starts: list[int]) -> None:
        shaped = _shaped(lower)
        lines = shaped.split("\n")
        if len(lines) != len(starts) - 1:  # a line contains line ends
            lines = [shaped[first : last - 1] for first, last in itertools.pairwise(starts)]
        at: dict[str, list[int]] = {}
        for index, line in enumerate(lines):
            if line in at:
                at[line].append(index)
            else:
                at[line] = [index]
        self.text = "\n".join(at)
        """The lines, one of each."""
        self._at = list(at.values())
        self._starts = list(itertools.accumulate(map((1).__add__, map(len, at)), initial=0))

    def words(self) -> str:
        """Return the different words of the lines."""
        return " ".join(set(self.text.split()))

    def find(self, shape: str, most: int) -> list[int]:
        """Return the indexes of the first lines that contain a shape, in order."""
        starts, found, index = self._starts, [], 0
        at = self.text.find(shape)
        while at >= 0:
            index = bisect.bisect_right(starts, at, index) - 1
            found.append(self._at[index])
            at = self.text.find(shape, starts[index + 1])
        if len(found) == 1:
            return found[0][:most]
        return sorted(itertools.chain.from_iterable(found))[:most]


@functools.lru_cache(maxsize=8192)  # 352 labelled tickets need 1,376
def shape_of(literal: str) -> tuple[str, str, bool]:
    """Return the longest word and line of a literal, with each digit as 0.

    The third value is whether the literal itself has to be searched too: it has digits or several
    lines.
    """
    shaped = _shaped(literal)
    word = max(shaped.split(), key=len, default="")
    return word, max(shaped.split("\n"), key=len), "0" in shaped or "\n" in shaped


def runs(lower: str) -> set[str]:
    """Return the runs of ASCII letters in a lower-case text."""
    return set(lower.encode("utf-8", "replace").translate(_LETTERS).decode("ascii").split())


def pieces(words: str) -> set[int] | None:
    """Return every sequence of four bytes in these words; None if there are too many words."""
    data = words.encode("utf-8", "replace")
    if len(data) > _MOST_IN_PIECES:
        return None
    found: set[int] = set()
    for first in range(min(_PIECE, len(data))):
        last = len(data) - (len(data) - first) % _PIECE
        found.update(memoryview(data)[first:last].cast("I"))
    return found


class ByPiece(Generic[T]):
    """Things by a piece of the literal that a text must contain for them to be relevant.

    One look-up returns the few of them that may be relevant to a text.
    """

    def __init__(self, things: Iterable[tuple[str, T]]) -> None:
        every = [(_pieces_of(literal), thing) for literal, thing in things]
        frequent = Counter(piece for own, _ in every for piece in own)
        self._by_piece: dict[int, list[T]] = {}
        self._short = [thing for own, thing in every if not own]
        for own, thing in every:
            if own:
                rarest = min(own, key=lambda piece: (frequent[piece], own[piece]))
                self._by_piece.setdefault(rarest, []).append(thing)
        self._pieces = frozenset(self._by_piece)

    def possible(self, pieces: set[int] | None) -> list[T]:
        """Return the things whose literal may occur in a text with these pieces, in any order."""
        if pieces is None:
            known = self._pieces
        elif self._pieces.isdisjoint(pieces):
            return self._short
        else:
            known = self._pieces & pieces
        return [thing for piece in known for thing in self._by_piece[piece]] + self._short


@functools.lru_cache(maxsize=4096)  # groups of literals; 352 labelled tickets need 297
def by_piece(literals: tuple[str, ...]) -> ByPiece[str]:
    """Return literals by their pieces."""
    return ByPiece((literal, literal) for literal in literals)


def has_piece(literal: str) -> bool:
    """Whether a literal has a word that is long enough for a piece."""
    return bool(_pieces_of(literal))


def _pieces_of(literal: str) -> dict[int, int]:
    """Return the pieces of a literal's words, and how frequent the characters of each are."""
    words = _shaped(literal).encode("utf-8", "replace").split()
    every = [word[at : at + _PIECE] for word in words for at in range(len(word) - _PIECE + 1)]
    return {
        memoryview(piece).cast("I")[0]: -sum(_RARITY[code] for code in piece) for piece in every
    }


def _shaped(lower: str) -> str:
    """Return a text of the same length with each digit as 0."""
    return lower.encode("utf-8", "replace").translate(_SHAPE).decode()


# A text as numbered clean lines, and a search for literals in it.


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line without quoting, prefixes and escape sequences; ``number`` is the line number.

    ``speaker`` is the rank or the host that a prefix names ("rank 3"), "" without one.
    """

    number: int
    text: str
    speaker: str = ""
    file: str = ""
    typed: str = ""
    """The text with the punctuation of its language, if that was replaced."""

    @property
    def quoted(self) -> str:
        """What a quote of the line shows."""
        return self.typed or self.text

    @property
    def source(self) -> str:
        """The name of the line in evidence: ``line 12``, with several files ``log.txt line 12``."""
        if not self.number:
            return self.file
        line = say("line {number}", number=self.number)
        return say("{file} {lines}", file=self.file, lines=line) if self.file else line


class Text:
    """Lines of a paste; of a long log only relevant lines, so numbers may have gaps."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = list(lines)
        texts = [line.text for line in self.lines]
        self.lower = "\n".join(texts).lower()
        if not self.lower.isascii():  # some letters of other scripts change their length
            texts = [text.lower() for text in texts]
            self.lower = "\n".join(texts)
        lengths = map((1).__add__, map(len, texts))  # including the line ends
        self._starts = list(itertools.accumulate(lengths, initial=0))
        self._shapes = LineShapes(self.lower, self._starts)
        self._words = self._shapes.words()
        self._pieces = pieces(self._words)
        self._held: dict[str, bool] = {}
        self._found: dict[tuple[str, int], list[int]] = {}
        self._runs: set[str] | None = None
        self.roles: dict[int, object] = {}
        """The role of each line that was asked for; ``roles`` knows what it is."""
        self.code: dict[int, bool] = {}
        """Whether a line is source code, for each that was asked for."""

    def holds(self, literal: str) -> bool:
        """Whether a lower-case literal occurs in the text."""
        known = self._held.get(literal)
        if known is None:
            word, shape, look = shape_of(literal)
            known = word in self._words and shape in self._shapes.text
            known = known and (not look or literal in self.lower)
            self._held[literal] = known
        return known

    def held(self, literals: tuple[str, ...]) -> list[str]:
        """Return which of the lower-case literals occur in the text, in any order."""
        possible = by_piece(literals).possible(self._pieces)
        return list(filter(self.holds, possible)) if possible else possible

    def possible(self, things: ByPiece[T]) -> list[T]:
        """Return the things whose literal may occur in the text; ``holds`` is exact for each."""
        return things.possible(self._pieces)

    def words(self) -> set[str]:
        """Return the runs of ASCII letters in the text, in lower case."""
        if self._runs is None:
            self._runs = runs(self._words)
        return self._runs

    def find(self, *literals: str, most: int = sys.maxsize) -> list[int]:
        """Return the indexes of the lines that contain one of the lower-case literals, in order.

        Args:
            literals: the texts to search for.
            most: the maximum number of lines per literal.
        """
        held = self.held(literals) if len(literals) > 1 else list(filter(self.holds, literals))
        if len(held) == 1:
            return self._lines_with(held[0], most)
        return sorted({index for literal in held for index in self._lines_with(literal, most)})

    def matching(
        self, form: Callable[[str], re.Match[str] | None], *literals: str
    ) -> Iterator[tuple[re.Match[str], Line]]:
        """Yield what a pattern finds in the lines with one of these literals, and each line.

        Args:
            form: the ``match`` or ``search`` of the pattern.
            literals: texts in lower case, one of which is in each line that the pattern matches.
        """
        for index in self.find(*literals):
            line = self.lines[index]
            found = form(line.text)
            if found is not None:
                yield found, line

    def _lines_with(self, literal: str, most: int) -> list[int]:
        """Return the first lines with a literal; cached, as several messages search for it."""
        found = self._found.get((literal, most))
        if found is not None:
            return found
        _, shape, look = shape_of(literal)
        found = self._search(literal, most) if look else self._shapes.find(shape, most)
        self._found[literal, most] = found
        return found

    def _search(self, literal: str, most: int) -> list[int]:
        found: list[int] = []
        lower, starts, index = self.lower, self._starts, 0
        at = lower.find(literal)
        while at >= 0 and len(found) < most:
            index = bisect.bisect_right(starts, at, index) - 1
            found.append(index)
            at = lower.find(literal, starts[index + 1])
        return found

    def after(self, index: int, most: int) -> list[Line]:
        """Return at most ``most`` lines after an index, up to a gap in the numbers."""
        found = self.lines[index + 1 : index + 1 + most]
        last = self.lines[index]
        for at, line in enumerate(found):
            if line.number - last.number > 1 or line.file != last.file:
                return found[:at]
            last = line
        return found
