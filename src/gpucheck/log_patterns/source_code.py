"""Whether a line is source code: a script, a quotation in a traceback, a Dockerfile, a diff.

Code names errors that it only wants to catch. Such a line is not a message about what happened.
"""

import re
from collections.abc import Sequence

from gpucheck.log_patterns.text import Line, Text

# Bounds such as {0,60} are above what programs print, and keep a search in a hostile line linear.
# What a diff, a doctest or a notebook writes before code.
_LEAD = r"^\s{0,80}(?:[+-]\s{0,60})?(?:(?:>>>|\.\.\.|In \[\d{1,4}\]:) ?)?"
_NAME = r"[A-Za-z_]\w{0,60}(?:\.\w{1,60}){0,8}"
_VALUE = (
    r"(?:[frbu]{0,2}[\"'(\[{]|-?\d[\w.]{0,20}\s{0,4}(?:$|[#*/+%)-])"
    r"|(?:lambda|not|await|yield|True|False|None)\b"
    rf"|{_NAME}\s{{0,4}}(?:[(\[#+*/%<>]|$|(?:if|or|and|in)\b))"
)
_STATEMENT = re.compile(
    _LEAD + r"(?:"
    r"from\s[\w.]{1,80}\simport\b|import\s\w[\w.]{0,80}(?:\sas\s\w{1,40})?\s{0,4}(?:[,;#]|$)"
    r"|(?:async\s)?(?:def|class)\s\w{1,80}\s?[(:]|@\w[\w.]{0,80}(?:\(|$)"
    r"|(?:if|elif|while|with|for|except|async\s(?:with|for))\s(?:not\s|\()?"
    r"(?:[\w.]{1,80}|[frbu]{0,2}(?:\"[^\"]{0,120}\"|'[^']{0,120}'))"
    r"(?:(?:[(\[,%+*/&|]|\s{0,2}[<>=!]=?|(?:\s|(?<=[\"']))(?:in|is|as|and|or|not)\b).{0,400}?)?"
    r":\s{0,8}"
    rf"(?:#|$|(?:raise|return|print|continue|break|pass|sys)\b|(?<=:){_NAME}\s?[=(])"
    r"|(?:case\s[\w:]{1,60}|default)\s?:(?:\s|$)"
    r"|(?:try|else|finally|except)\s?:\s{0,8}(?:#|$)"
    r"|return\s(?:[\w.]{1,80}\(|[\[{(\"']|self\b|True\b|False\b|None\b|not\b|-?\d)|return\s{0,4}$"
    r"|raise\s\w[\w.]{0,80}(?:\(|\s{0,4}$|\sfrom\b)"
    r"|assert\s(?:not\s)?[\w.]{1,80}\s{0,2}(?:[(\[,%+*/-]|[<>=!]=|[<>]|(?:in|is|and|or)\b)"
    r"|(?:del|global|nonlocal)\s\w{1,80}\s{0,4}$|(?:pass|continue|break)\s{0,4}$"
    r"|print\s?[(\"']"
    rf"|{_NAME}(?:\[[^\[\]]{{0,80}}\])?(?:,\s?{_NAME}){{0,4}}(?::\s[\w.\[\]| ,]{{1,60}})?"
    rf"\s[-+*/|&@]{{0,2}}=\s{_VALUE}"
    rf"|{_NAME}=(?:\"[^\"]{{0,200}}\"|'[^']{{0,200}}'|[\w.-]{{1,80}}),?\s{{0,8}}(?:#|$)"
    rf"|{_NAME}=(?:{_NAME}\(|[\[{{(]).{{0,300}}[)\]}}(\[{{,]\s{{0,8}}$"
    r"|#include\b|#define\b|#SBATCH\b|#!/|//\s|/\*|\*/"
    r"|(?:\}\s?)?(?:else\s)?(?:if|for|while|switch)\s?\(.{0,300}[{;]\s{0,8}$"
    r"|(?:static|const|constexpr|void|int|bool|auto|template|namespace|using|struct|std::)\b"
    r".{0,300}[;{(,]\s{0,8}$"
    r"|[A-Z][A-Z_]{3,40}\(.{0,300}[;,(]\s{0,8}$"
    r"|(?:RUN|ENV|FROM|COPY|ADD|ARG|WORKDIR|ENTRYPOINT|CMD|LABEL|EXPOSE|SHELL|HEALTHCHECK)\s\S"
    r"|export\s\w{1,60}=\S{0,200}\s{0,8}(?:[#;&]|$)|echo\s[\"'$-]|trap\s\S|set\s[-+]\w|source\s\S{1,80}$"
    r"|[A-Za-z_]\w{0,60}=\$\(\S.{0,200}\)\s{0,4}$"
    r"|(?:if|elif|while)\s(?:!\s)?\[|(?:fi|done|esac)$"
    r"|exit\s\d{1,3}\s{0,4}$"
    r"|(?:-\s)?[\"']?(?!\w{0,40}(?i:error|code|status|reason|message|xid|exit))[a-zA-Z]\w{0,40}[\"']?:\s"
    r"(?:-?\d[\d.]{0,20}|true|false|null|[\"'][\w./:=-]{0,80}[\"']|[{\[].{0,200}[}\]]),?\s{0,4}$"
    r"|-\s(?:name|mountPath|image|key|driver|value|path):\s\S{1,120}$"
    r")"
)
# Such a line is code in a script, and a command that somebody typed elsewhere.
_COMMAND = re.compile(
    r"^\s{0,20}(?:sudo\s)?(?:p?kill|killall|pip3?|conda|mamba|python3?|torchrun|srun|mpirun|"
    r"accelerate|deepspeed|docker|nvidia-smi|apt|apt-get|git|cd|mkdir|rm|uv)\s"
)
_CALL = re.compile(_LEAD + r"(?:await\s)?(?:[a-z_]\w{0,60}|[A-Z]\w{0,60}\.\w{1,60})"
                   r"(?:\.\w{1,60}){0,8}\(")  # fmt: skip
# What may follow the closing bracket: after a sentence's bracket stands a word.
_AFTER_CALL = re.compile(r"\s{0,8}(?:$|[#,;)\]}\[]|\.\w)")
_REST = re.compile(
    r"^\s{0,120}(?:[frbu]{0,2}[\"']|[)\]}]|-?\d|[*#]|[A-Za-z_][\w.]{0,80}\s?(?:[=(\[,)]|$))"
)
"""The first words of a line that continues with a statement; a sentence has no such start."""
_TELLS = re.compile(r"\s{0,80}(?:raise|assert|warnings\.warn)\b")
"""Statements that count in a traceback, which shows that they ran. In a script they may not."""
_NOTED = re.compile(r"(?:Error|Exception|Warning)\b(?::|\s{0,4}$)")
"""A comment that quotes the output of a program."""
# Below such a line a traceback quotes code that ran.
_FRAME = re.compile(r"\bline \d{1,7}\b|\.py:\d{1,7}\b|\bin \w{1,80}\(")
_COMMENT = re.compile(r"^\s{0,80}(?:[+-]\s{0,60})?(?:#|//|\*\s)")
_QUOTES = ('"""', "'''")
_BEFORE_QUOTES = " \trfbu"
_FENCE = ("```", "~~~")
_OPEN, _CLOSE = "([{", ")]}"
_FAR, _LONG_TEXT, _CONTINUED = 4, 40, 12
"""Lines: from a comment to its code, of a quoted text, of a statement."""


def is_statement(text: str) -> bool:
    """Whether a line by itself is a statement of Python, a shell, C++ or a Dockerfile."""
    return _STATEMENT.match(text) is not None or _is_call(text)


def is_code(whole: Text, index: int) -> bool:
    """Whether a line is code, including a comment, a quoted text or the rest of a statement.

    It is found once for each text.
    """
    known = whole.code.get(index)
    if known is None:
        known = whole.code[index] = _is_code(whole, index)
    return known


def _is_code(whole: Text, index: int) -> bool:
    lines = whole.lines
    text = lines[index].text
    if is_statement(text):
        return _TELLS.match(text) is None or not _is_quoted(lines, index)
    if _COMMAND.match(text):
        return not text.rstrip().endswith((":", ".", "?")) and _in_script(lines, index)
    if text.lstrip(_BEFORE_QUOTES).startswith(_QUOTES):
        return _below_code(lines, index)
    if _COMMENT.match(text):
        return _NOTED.search(text) is None and _near_code(lines, index)
    if _is_continued(lines, index):
        return True
    return any(map(whole.holds, _QUOTES)) and _in_quotes(lines, index)


def _is_call(text: str) -> bool:
    """Whether the line is only a call, complete or unfinished."""
    found = _CALL.match(text)
    if found is None:
        return False
    depth = 0
    for at in range(found.end() - 1, len(text)):
        if text[at] in _OPEN:
            depth += 1
        elif text[at] in _CLOSE:
            depth -= 1
            if depth == 0:
                return _AFTER_CALL.match(text, at + 1) is not None
    return text.endswith((*_OPEN, ","))


def _in_script(lines: Sequence[Line], index: int) -> bool:
    """Whether there is a statement in the same paragraph, at most a few lines away."""
    for step in (1, -1):
        for at in range(index + step, index + step * (_CONTINUED + 1), step):
            if not 0 <= at < len(lines) or not lines[at].text or is_statement(lines[at].text):
                break
        else:
            continue
        if 0 <= at < len(lines) and lines[at].text:
            return True
    return False


def _below_code(lines: Sequence[Line], index: int) -> bool:
    above = (line.text for line in reversed(lines[max(0, index - _FAR) : index]) if line.text)
    return is_statement(next(above, ""))


def _is_quoted(lines: Sequence[Line], index: int) -> bool:
    """Whether a traceback quotes the line: a frame stands above it."""
    above = (line.text for line in reversed(lines[max(0, index - 2) : index]) if line.text)
    return any(_FRAME.search(line) for line in above)


def _near_code(lines: Sequence[Line], index: int) -> bool:
    for step in (1, -1):
        for at in range(index + step, index + step * (_FAR + 1), step):
            if not 0 <= at < len(lines) or lines[at].text.startswith(_FENCE):
                break
            if lines[at].text.strip() and not _COMMENT.match(lines[at].text):
                if is_statement(lines[at].text):
                    return True
                break
    return False


def _is_continued(lines: Sequence[Line], index: int) -> bool:
    """Whether a statement above is unfinished: it opens more brackets than it closes."""
    if _REST.match(lines[index].text) is None:
        return False
    closed = 0
    for at in range(index - 1, max(-1, index - 1 - _CONTINUED), -1):
        text = lines[at].text
        if not text.strip() or text.startswith(_FENCE):
            return False
        opened = sum(map(text.count, _OPEN)) - sum(map(text.count, _CLOSE))
        if opened > closed:
            return is_statement(text) or _is_continued(lines, at)
        closed = max(0, closed - opened)
    return False


def _in_quotes(lines: Sequence[Line], index: int) -> bool:
    """Whether a triple-quoted text began above, as a statement or as the value of one."""
    for at in range(index - 1, max(-1, index - 1 - _LONG_TEXT), -1):
        text = lines[at].text
        if text.startswith(_FENCE):
            return False
        marks = sum(map(text.count, _QUOTES))
        if marks % 2:
            before = text.replace("'''", '"""').rpartition('"""')[0].strip(_BEFORE_QUOTES)
            return is_statement(text) or (not before and (at == 0 or _below_code(lines, at)))
    return False
