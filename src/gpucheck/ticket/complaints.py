"""The sentence in which somebody complains that something of the environment fails or is missing.

It names no cause. It only keeps a text from being called healthy: whoever writes that the GPU is
not used, or that an installation fails, may be right although no line shows why.
"""

import re

from gpucheck.log_patterns.matcher import names_a_part
from gpucheck.log_patterns.roles import PRINTED, Role, role_of
from gpucheck.log_patterns.text import Line, Text

_MOST = 60
"""Lines with each of the words that are looked at."""
_LONGEST, _MOST_CHARACTERS = 400, 64 * 1024
"""Characters of a sentence, and of all lines, that are looked at."""
_FAILURES = (
    r"\bfail|\berrors?\b|crash|\bhangs?\b|\bhung\b|\bstuck\b|freez|segfault|corrupt|mismatch",
    r"cannot|can.?t\b|can not|unable|won.t|\brefus|not (?:to )?support|incompatib|undefined",
    r"\bfalse\b|unavailable|\bmissing\b|\bkilled\b|\bdied\b|tim(?:ed?|ing) ?out|disappear",
    r"fell off|\breject|throttl",
    r"(?:problem|issue|trouble)s? (?:with |when |while )?(?:install|build|compil)",
    r"only (?:uses? |using )?(?:the )?cpu|instead of (?:the |my )?gpu",
    r"(?:runs?|running|us(?:es?|ing)|trains?|training) (?:only )?(?:on )?(?:the |my )?cpu",
    r"\bno (?:longer|cuda|gpus?|devices?|nvidia)\b",
    r"(?:not|n.t)(?: \w{1,12}){0,2} (?:work|detect|f(?:i|ou)nd|avail|recogni|us(?:e|ing)\b)",
    r"(?:not|n.t)(?: \w{1,12}){0,2} (?:see\b|seen|start|load|access|compat|run|install|enabl)",
    r"not visible",
    r"报错|失败|错误|不可用|无法|不能|找不到|没有(?:找到|检测|使用|用|调用)|卡住|卡死|崩溃",
    r"不兼容|不识别|检测不到|用不了|不支持|爆显存",
)
_PARTS = (
    r"\bcuda\b(?! ?graph)|\bgpus?\b|(?<=[^a-z])gpu|显卡|驱动|显存|\bvram\b|\boom\b",
    r"out of memory",
    r"\b(?:gpu|nvidia|graphics|cuda|video|display) drivers?\b|nvidia|\bxid\b|\becc\b",
    r"\bmig\b|\bwsl|\bgeforce\b|\bjetson\b",
    r"\bnccl\b|nvlink|infiniband|\brdma\b|all_?reduce\b|multi-?node|\bc10d\b",
    r"cudnn|cublas|\bnvcc\b|toolkit|\bninja\b|\bptxas\b|\.so\b|\.?\bdll\b|illegal instruction",
    r"\bpip3? install|\bwheels?\b|\bconda\b|\btorch(?:vision|audio)?\b(?!\.\w|run)|\bpytorch\b",
    r"flash.?attn|xformers|bitsandbytes|apex\b",
)
_FAILS, _OF_ENVIRONMENT = "|".join(_FAILURES), "|".join(_PARTS)
_COMPLAINT = re.compile(
    rf"(?:{_FAILS}).{{0,60}}?(?:{_OF_ENVIRONMENT})|(?:{_OF_ENVIRONMENT}).{{0,60}}?(?:{_FAILS})",
    re.IGNORECASE,
)
_BY_ITSELF = re.compile(
    r"爆显存|显存(?:不足|溢出|不够)|\bOOM\b|out of (?:gpu |cuda |video )?memory"
    r"|\bundefined symbol\b|\bonly us\w{1,4} (?:the )?cpu\b",
    re.IGNORECASE,
)
_LITERALS = (
    "cuda", "gpu", "显卡", "驱动", "显存", "driver", "nvidia", "nccl", "cudnn", "cublas", "nvcc",
    "nvlink", "infiniband", "rdma", "xid", "ecc", "wsl", "mig", "reduce", "toolkit", "pip install",
    "pip3 install", "wheel", "conda", "torch", "oom", "vram", "out of memory", "node", "c10d",
    "flash", "xformers", "bitsandbytes", "apex", "dll", ".so", "illegal instruction", "ninja",
    "geforce", "jetson", "ptxas", "only uses", "only using", "undefined symbol",
)  # fmt: skip
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[\u3002\uff01\uff1f]|\s{2,}")
_WHY = re.compile(
    r"\bwhy\b|how (?:can i|do i|to) (?:fix|solve)|为什么|怎么(?:办|解决)|如何解决", re.IGNORECASE
)
_WISH = re.compile(
    r"\[?(?:feature|feat|rfc|doc\w{0,12}|roadmap|proposal|performance|perf|discussion|misc|question)"
    r"(?: request)?\]?\s?[:\])]|feature request|\[(?:model|new model)\]",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"\s{0,20}[\w .()-]{1,60}:\s{1,40}(?:True|False|None|N/A|No(?: CUDA)?|Could not collect)\s*$"
)
"""An answer in a report on the environment: it is read as a fact."""
_TITLE = 3
"""Lines at the beginning that may be the title."""
_PROSE = re.compile(
    r"[^:{}=/]{0,80}?\b(?:[A-Za-z'-]{1,20},? ){3}[a-z'-]{1,20}\b"
    r"|[^\n]{0,80}?(?:[\u4e00-\u9fff][^\n]{0,3}){6}"
    r"|\[(?:feature|rfc|doc\w{0,12}|usage|question|bug|perf\w{0,12}|misc|install\w{0,8}|model)\]",
    re.IGNORECASE,
)
_WORD = re.compile(r"\b[a-z'-]{2,20}\b|[\u4e00-\u9fff]{2}")
_ENOUGH, _BEGINNING = 16, 4000
"""Words within so many characters that make more of a text than an exclamation."""
_ASKS = re.compile(
    rf"^[# *]{{0,6}}(?:{_WISH.pattern})|\w ?\?(?:\s|$)|请问|能否|是否|如何|怎么|有没有",
    re.IGNORECASE,
)
_ROLES = (Role.SAID, Role.ERROR, Role.WARNING)


def first_complaint_of_environment(text: Text) -> Line | None:
    """Return the first line that complains of the environment; None for a wish or a proposal."""
    if is_wish(text):
        return None
    left = _MOST_CHARACTERS
    for index in text.find(*_LITERALS, most=_MOST):
        line = text.lines[index]
        left -= len(line.text)
        if left < 0:
            return None
        if _complains(line.text) and role_of(text, index) in _ROLES:
            return line
    return None


def is_wish(text: Text) -> bool:
    """Whether a text is by its title a wish, a proposal or a question about the documentation."""
    return any(_WISH.match(line.text.lstrip("# *")) for line in text.lines[:_TITLE])


def tells_something(text: Text) -> bool:
    """Whether somebody asks, wishes or tells something of PyTorch, CUDA, GPUs or their programs.

    An inventory of facts alone does not.
    """
    if names_a_part(text):
        return any(
            _PROSE.match(line.text) and role_of(text, index) not in PRINTED
            for index, line in enumerate(text.lines)
        )
    return (
        any(_ASKS.search(line.text) for line in text.lines)
        or len(_WORD.findall(text.lower, 0, _BEGINNING)) >= _ENOUGH
    )


def _complains(line: str) -> bool:
    if _FACT.match(line):
        return False
    if _BY_ITSELF.search(line):
        return True
    sentences = (
        sentence[:_LONGEST] for sentence in _SENTENCE.split(line) if not _is_question(sentence)
    )
    return any(_COMPLAINT.search(sentence) for sentence in sentences)


def _is_question(sentence: str) -> bool:
    """Whether it asks for something; who asks why complains."""
    return sentence.rstrip().endswith("?") and _WHY.search(sentence) is None
