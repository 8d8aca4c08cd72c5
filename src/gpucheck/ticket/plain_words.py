"""Lines in the words that messages know: what systems print in other languages, errors by number.

The C library, shells and Windows translate what they say; PyTorch and CUDA do not, but many
programs print the number of an error of CUDA without its words. The quote of a line keeps its own
words.
"""

import re
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from gpucheck.findings.gpu_memory import OUT_OF_MEMORY
from gpucheck.log_patterns.source_code import is_statement
from gpucheck.log_patterns.text import Line, Text
from gpucheck.tables import Tables
from gpucheck.tables.error_codes import CudaErrorRow, CudaErrors

# The translations of glibc and bash (https://translationproject.org) and of Windows, as far as
# tickets quote them, in lower case.
_TRANSLATIONS = {
    "No such file or directory": (
        "没有那个文件或目录", "沒有此一檔案或目錄", "datei oder verzeichnis nicht gefunden",
        "aucun fichier ou dossier de ce type", "no existe el archivo o el directorio",
        "no existe el fichero o el directorio", "file o directory non esistente",
        "arquivo ou diretório inexistente", "нет такого файла или каталога",
        "そのようなファイルやディレクトリはありません", "그런 파일이나 디렉터리가 없습니다",
        "nie ma takiego pliku ani katalogu", "böyle bir dosya ya da dizin yok",
    ),
    "cannot open shared object file": ("无法打开共享对象文件", "无法打开共享目标文件"),
    "command not found": (
        "未找到命令", "找不到命令", "befehl nicht gefunden", "kommando nicht gefunden",
        "commande introuvable", "orden no encontrada", "comando non trovato",
        "comando não encontrado", "команда не найдена", "コマンドが見つかりません",
        "명령을 찾을 수 없음", "명령어를 찾을 수 없음",
    ),
    "is not recognized as an internal or external command": (
        "不是内部或外部命令", "不是內部或外部命令",
        "ist entweder falsch geschrieben oder konnte nicht gefunden werden",
        "n'est pas reconnu en tant que commande interne",
        "no se reconoce como un comando interno", "não é reconhecido como um comando interno",
        "не является внутренней или внешней командой",
        "は、内部コマンドまたは外部コマンド", "내부 또는 외부 명령",
    ),
    "is not recognized as the name of a cmdlet": ("项识别为 cmdlet",),
    "Address already in use": (
        "地址已在使用", "位址已經在使用中", "die adresse wird bereits verwendet",
        "adresse déjà utilisée", "la dirección ya se está usando", "адрес уже используется",
        "アドレスは既に使用中です",
    ),
    "Cannot allocate memory": (
        "无法分配内存", "無法配置記憶體", "nicht genügend hauptspeicher verfügbar",
        "impossible d'allouer de la mémoire", "no se pudo asignar memoria",
        "невозможно выделить память", "メモリを確保できません", "메모리를 할당할 수 없습니다",
    ),
    "No space left on device": (
        "设备上没有空间", "auf dem gerät ist kein speicherplatz mehr verfügbar",
        "aucun espace disponible sur le périphérique", "no queda espacio en el dispositivo",
        "на устройстве не осталось свободного места", "デバイスに空き領域がありません",
    ),
    "Bus error": ("总线错误", "匯流排錯誤"),
}  # fmt: skip
_ENGLISH = {
    words: english for english, translations in _TRANSLATIONS.items() for words in translations
}
_LITERALS = (*_ENGLISH, "由于找不到", "计算机中丢失")
_ANY = re.compile("|".join(map(re.escape, _ENGLISH)), re.IGNORECASE)
# Bounds such as {1,60} are above what systems print, and keep a search in a hostile line linear.
_LIBRARY = re.compile(r"(\.so[.\d]{0,16}): ?[^:]{4,60}: ?(?=No such file or directory)")
"""What the loader says of a library that does not exist; the words between are translated, too."""
_DLL = re.compile(r"(?:由于找不到|计算机中丢失) ?(\w{1,60}\.dll)", re.IGNORECASE)
_CMDLET = re.compile(r"无法将 ?\W?([\w.-]{1,60})\W? ?(?=is not recognized as the name of a cmdlet)")
_MOST_TRANSLATED = 20
"""Lines with each of the words that are looked at."""

_LITERALS_OF_NUMBERS = (
    "cuda error", "cuda runtime error", "cuda driver error", "cuda api error", "cuda failure",
    "cuda failed", "thcudacheck", "cudaget", "cudaset", "cudamalloc", "cudadevice", "cudastream",
    "cudaerror", "cuda_error", "cuinit", "cudeviceget", "call to cu", "error code", "with error",
    "cudamem", "cumem", "cuctx",
    "cudapeek", "cudafree", "cudaevent", "cudalaunch", "init failure:",
)  # fmt: skip
# A number that counts something ("2 GPUs") or goes on ("2.1", "2%") is no code.
_ERROR_NUMBER = (
    r"(?P<code>\d{1,3})(?![\w%]|\.\w)(?! ?(?:gpus?|devices?|times|errors?|ranks?|process\w*)\b)"
)
_WORD = r"(?:error|failure|failed)"
_TO_NUMBER = r"(?: ?code)?\s?[:=#]?\s?[(\[]?" + _ERROR_NUMBER
_CALLED = (
    r"\bcu(?:da(?:Get|Set|Malloc|Device|Stream|Mem|Peek|Free|Event|Launch)|Init|DeviceGet|Mem|Ctx)"
    r"\w{0,40}"
    r"(?:\([^()]{0,80}\))?,?\s"
)
_ERROR_NAME = re.compile(r"\b(?:cudaError[A-Z]\w{3,60}|CUDA_ERROR_\w{3,60})")
_CALLS_WITHOUT_MEMORY = ("cudagetdevice", "cuinit", "cudeviceget")
"""Calls that use no GPU memory: their 2 may be a count, or something else is short."""
_MOST_NUMBERED = 50  # chosen: lines with such a word; 12 change no answer on 752 labelled tickets
_LONGEST = 1000  # characters of a line; chosen: a number of CUDA stands near its words


# The words, as the tables have them, are added to the line in brackets, where the matcher finds
# them.
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\bCUDA (?:runtime |driver |API )?{_WORD}(?: ?code)?(?:[:=]? {_WORD} code)?{_TO_NUMBER}",
        rf"\bTHCudaCheck\w{{0,8}} FAIL\b.{{0,200}}\berror={_ERROR_NUMBER}",
        rf"{_CALLED}(?:returned|returns|return|{_WORD}|==|=|->)(?: with)?(?:[:,]? {_WORD})?"
        + _TO_NUMBER,
        rf"\bcudaError(?:_t|_enum)?\s?[:=(]{{0,2}}\s?{_ERROR_NUMBER}",
        rf"\bcode ?= ?{_ERROR_NUMBER}\s?\(cuda",
        rf"\[{_ERROR_NUMBER}\] Call to cu\w{{1,40}} results in",
        rf"\bCUDA\b.{{0,60}}\b{_WORD}\b.{{0,30}}?\berror{_TO_NUMBER}",
        rf"\b(?:cuda driver library|cudart) init failure: {_ERROR_NUMBER}",  # Ollama
    )
)


def in_english(text: Text) -> Text:
    """Return the text with what systems print in English; the same text if nothing is else."""

    def translated(line: Line) -> Line:
        words = _translated(line.text)
        return line if words == line.text else replace(line, text=words, typed=line.quoted)

    return _reworded(text, text.find(*_LITERALS, most=_MOST_TRANSLATED), translated)


def with_names(text: Text, tables: Tables) -> Text:
    """Return the text with each numbered CUDA error named; the same text if there is none."""
    errors = tables.get(CudaErrors)

    def named(line: Line) -> Line:
        row = _row(line.text[:_LONGEST], errors)
        if row is None or _is_named_in(line.text, row):
            return line
        return replace(line, text=f"{line.text} [{row.runtime}: {row.message}]", typed="")

    return _reworded(text, text.find(*_LITERALS_OF_NUMBERS, most=_MOST_NUMBERED), named)


def _reworded(text: Text, indexes: Iterable[int], reword: Callable[[Line], Line]) -> Text:
    lines = text.lines
    changed = {at: line for at in indexes if (line := reword(lines[at])) is not lines[at]}
    if not changed:
        return text
    return Text(changed.get(at, line) for at, line in enumerate(lines))


def _translated(words: str) -> str:
    words = _ANY.sub(lambda found: _ENGLISH[found[0].lower()], words)
    words = _LIBRARY.sub(r"\1: cannot open shared object file: ", words)
    words = _CMDLET.sub(r"'\1' ", words)
    return _DLL.sub(r"\1 was not found", words)


def _is_named_in(line: str, row: CudaErrorRow) -> bool:
    """Whether a line has both the name and the words."""
    return row.runtime in (None, *_ERROR_NAME.findall(line)) and (row.message or "") in line


def _row(line: str, errors: CudaErrors) -> CudaErrorRow | None:
    """Return the row of the error in a line; a name decides before a number, code has none."""
    if is_statement(line):
        return None
    named = next(filter(None, map(errors.named, _ERROR_NAME.findall(line))), None)
    if named is not None:
        return named if named.slugs and named.runtime and named.message else None
    found = next(filter(None, (form.search(line) for form in _FORMS)), None)
    if found is None:
        return None
    row = meant(int(found["code"]), line, errors)
    if row is not None and OUT_OF_MEMORY.slug in row.slugs:
        return None if any(map(line.lower().__contains__, _CALLS_WITHOUT_MEMORY)) else row
    return row


def meant(code: int, line: str, errors: CudaErrors) -> CudaErrorRow | None:
    """Return the row of an error number in a line; CUDA before 10.1 used other numbers.

    The words of the line decide. Without words it is the row of a finding, and the newer one of
    two: users hardly ever see the old numbers today.
    """
    rows = [errors.error(code), errors.error_before_10_1(code)]
    known = [row for row in rows if row is not None and row.runtime and row.message]
    for row in known:
        if row.message and row.message.lower() in line.lower():
            return row
    return next((row for row in known if row.slugs), None)
