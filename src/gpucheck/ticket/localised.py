"""What an operating system prints in the language of its user, in English, as messages know it.

The C library, shells and Windows translate what they say; PyTorch and CUDA do not. The quote of a
line keeps its own words.
"""

import re

import msgspec

from gpucheck.log_patterns.text import Text

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
_MOST = 20
"""Lines with each of the words that are looked at."""


def in_english(text: Text) -> Text:
    """Return the text with what systems print in English; the same text if nothing is else."""
    translated = {}
    for index in text.find(*_LITERALS, most=_MOST):
        line = text.lines[index]
        words = _translated(line.text)
        if words != line.text:
            translated[index] = msgspec.structs.replace(line, text=words, typed=line.quoted)
    if not translated:
        return text
    return Text(translated.get(index, line) for index, line in enumerate(text.lines))


def _translated(words: str) -> str:
    words = _ANY.sub(lambda found: _ENGLISH[found[0].lower()], words)
    words = _LIBRARY.sub(r"\1: cannot open shared object file: ", words)
    words = _CMDLET.sub(r"'\1' ", words)
    return _DLL.sub(r"\1 was not found", words)
