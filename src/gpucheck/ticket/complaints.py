"""The sentence in which somebody complains that the GPU is not used, of an installation, of a hang.

It names no cause. It only keeps a text from being called healthy: whoever writes that the GPU is
not used, or that all ranks hang, may be right although no line shows why. What else people complain
of, the second reader reads (``prose_reader``).
"""

import re
from collections.abc import Sequence

from gpucheck.log_patterns.matcher import names_a_part
from gpucheck.log_patterns.roles import PRINTED, SILENT, Role, role_of
from gpucheck.log_patterns.source_code import is_statement
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.prose import somebody_speaks

_MOST = 60
"""Lines with each of the words that are looked at."""
_LONGEST, _MOST_CHARACTERS = 400, 64 * 1024
"""Characters of a sentence, and of all lines, that are looked at."""
# Bounds such as {0,24} keep a search in a hostile line linear.
_GPU = (
    r"(?:\bgpus?\b|(?<=[^a-z])gpu|\bcuda\b|(?<=[^a-z])cuda|(?:graphics|video) card"
    r"|nvidia (?:card|device)|显卡)"
)
_NOT = (
    r"(?:\b(?:not?|neither|cannot|can.?t|unable|never|fail(?:s|ed)?|stop(?:s|ped)?"
    r"|(?:do(?:es)?|did|is|was|wo|could) ?n.?t)\b|不|没|无法|未)"
)
_SEEN = (
    r"(?:detect|recogni|f(?:i|ou)nd|us(?:e|ed|ing)\b|utili[sz]|avail|see\b|seen|visible|invok|run\b"
    r"|识别|检测|调用|认出|找|用|支持)"
)
_RANKS = r"(?:\bnodes?\b|\branks?\b|rendez ?-?vous|多机|多卡|节点)"
_TIMES_OUT = r"(?:\btime[sd]? ?out\b|超时)"
_OF_RANKS = (
    r"(?:nccl|_perf\b|all.?reduce|\bnodes?\b|\bhosts?\b|\branks?\b|\bgpus\b|\bcards\b|多机|多卡|节点).{0,40}?"
    r"(?:\bhangs?\b|\bhung\b|\bstuck\b|\bfreez|\bfroze|卡住|卡死|挂起)|_perf\b.{0,24}?\bfails?\b"
    rf"|{_RANKS}.{{0,40}}?{_TIMES_OUT}|{_TIMES_OUT}.{{0,40}}?{_RANKS}"
    r"|(?:\bhangs?|\bhung|\bstuck|\bfreez\w{1,4})\b.{0,40}?"
    r"(?:\bddp\b|\bdistributed\b|multi\w{0,4}[- ](?:gpu|node))"
)
# What is not seen and who does not see it, in either order, within 24 characters: farther apart
# they belong to two clauses.
_COMPLAINT = re.compile(
    rf"{_GPU}.{{0,24}}?{_NOT}.{{0,16}}?{_SEEN}"
    rf"|{_NOT}.{{0,16}}?(?:{_SEEN}.{{0,24}}?{_GPU}|{_GPU}.{{0,24}}?{_SEEN})"
    rf"|{_NOT}.{{0,4}}?\bwork (?:on|with|for)\b.{{0,24}}?{_GPU}"
    r"|(?:识别|检测|找|调用|用)不[到了].{0,12}?(?:gpu|cuda|显卡)"
    r"|\bcpu instead\b|\b(?:only|instead)\b.{0,12}?\b(?:us(?:es?|ing)|on|of)\b.{0,12}?\b[cg]pu\b"
    r"|\b(?:switch(?:es|ed)?|f[ae]lls?|goes|revert(?:s|ed)?) (?:back )?(?:on)?to (?:the )?cpu\b"
    r"|\b(?:then|now|still) (?:uses?|using|runs? on|running on) (?:the )?cpu\b"
    r"|\bfound (?:the )?cpu\b|\bit(?:'s| is) using (?:the )?cpu\b|\bthere is no cuda\b"
    r"|\bno space left on device\b|\baddress (?:is )?already in use\b"
    r"|\bbus ?(?:bw|bandwidth)\b.{0,24}?\b(?:low|half|between)\b"
    r"|n.?t (?:buil[dt]|compiled) with.{0,12}?\b(?:cuda|gpu)\b"
    r"|(?:只|默认).{0,8}?用.{0,4}?cpu|用.{0,4}?cpu.{0,4}?而不是"
    r"|(?:fail|error|cannot|can.?t|unable|(?<!no )problem|trouble|无法|失败).{0,24}?"
    r"(?:\binstall|安装)"
    r"|(?:\binstall|安装).{0,24}?(?:fail|error|失败|报错)|装(?:不上|.{0,4}?失败)"
    r"|\berrors? detected in the compilation of\b|\bnvcc(?:\.exe)?\W{1,3}failed with exit\b"
    r"|\bfailed building wheel\b|\b(?:computer|pc|laptop|machine)\b.{0,16}?"
    r"\b(?:crash(?:es|ed)|reboot(?:s|ed)|restarts|shuts down|freezes|froze|unreachable)\b"
    r"|(?:电脑|机器|主机|系统).{0,12}?(?:重启|关机)|(?:自动|自己|突然)(?:重启|关机)"
    r"|死机|蓝屏|黑屏|\boverheat|\b(?:too|very|gets) hot\b"
    r"|\b(?:monitor|screen) (?:goes|went|turns|turned|stays|gets) (?:off|black|blank)\b"
    rf"|{_OF_RANKS}"
    r"|\bmake\b.{0,24}?\b(?:recogni[sz]e|detect|find|see)\b.{0,12}?\bgpu\b"
    r"|\b(?:memory|vram) (?:is|was|gets) exceeded\b"
    r"|(?<![a-z])oom(?![a-z])|out of memory|爆显存|显存(?:不足|不够|溢出)"
    r"|内存(?:不足|不够|溢出|爆|泄漏|泄露|越来越大|超出)|\bresource exhausted\b"
    r"|\b(?:gets?|got|is|was|be|been|being|train) killed\b|[被就] ?killed|^\W{0,4}killed\W{0,4}$"
    r"|\bjust sto(?:ps|p?ped)\b|(?:return|exit|error) ?code\D{0,12}-9\b",
    re.IGNORECASE,
)
_SEVERAL = re.compile(_OF_RANKS, re.IGNORECASE)
_PICTURE = ("![", "<img ", "截图", "见图")
_ERROR = re.compile(r"\berrors?\b(?!:\s{0,4}\S)|报错|错误", re.IGNORECASE)
_ABOVE = 2
"""Lines, chosen: above a picture stands what it shows, with an empty line between."""
_LITERALS = (
    "cuda", "gpu", "graphics card", "显卡", "cpu", "oom", "out of memory", "显存", "install",
    "hang", "hung", "stuck", "freez", "froze", "_perf", "busbw", "bus bandwidth",
    "no space left on device", "already in use", "卡", "挂起", "timeout", "timed out", "times out",
    "time out", "超时", "killed", "内存", "resource exhausted", "-9",
    "just sto", "exceeded", "overheat", " hot", "monitor", "screen",
    "安装", "装不上", "装失败", "video card", "nvidia card", "nvidia device", "compilation of",
    "failed building", "crashe", "reboots", "rebooted",
    "restarts", "shuts down", "unreachable", "死机", "蓝屏", "黑屏", "重启", "关机",
)  # fmt: skip
# Chinese marks end a sentence without a blank behind them. A comma, too: who asks what to do may
# have complained before it.
_SENTENCE = re.compile(r"(?<=[.!?])\s+|[\u3002\uff01\uff1f,]|\s{2,}")
_WHY = re.compile(
    r"\bwhy\b|how (?:can i|do i|to) (?:fix|solve)|为(?:什么|啥)|怎么(?:办|解决)|如何解决"
    r"|\bwarum\b|\bwieso\b|\bpourquoi\b|\bpor qué\b|\b\u043f\u043e\u0447\u0435\u043c\u0443\b"
    r"|なぜ|どうして",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"\[?(?:feature|feat|rfc|docs?|documentation|roadmap|proposal|track|performance|perf|misc)"
    r"(?: request)?\]?\s?[:\])]|feature request|\[(?:model|new model)\]"
    r"|(?:加上|增加|新增|添加)(?!了|后|完)",
    re.IGNORECASE,
)
TITLE = 3
"""Chosen: lines at the beginning that may be the title; a form may put a heading before it."""
# Four words or six characters of Chinese or Japanese in a row: less is a title or a label.
_PROSE = re.compile(
    r"[^:{}=/]{0,80}?\b(?:[^\W\d_][\w'-]{0,19},? ){3}[^\W\d_][\w'-]{0,19}\b"
    r"|[^\n]{0,80}?(?:[\u3041-\u30fa\u4e00-\u9fff][^\n]{0,3}){6}"
    r"|\[(?:feature|rfc|doc\w{0,12}|usage|question|bug|perf\w{0,12}|misc|install\w{0,8}|model)\]",
    re.IGNORECASE,
)
_WORD = re.compile(
    r"[\u3041-\u30fa\u4e00-\u9fff]{2}|[a-z\u00df-\u024f\u0400-\u04ff'-]{2,20}", re.IGNORECASE
)
_ENOUGH, _BEGINNING = 16, 4000
"""Words within so many characters of a line that make more of a text than an exclamation."""
_ASKS = re.compile(
    r"\w ?\?(?:\s|$)|请问|能否|是否|如何|怎么|有没有"
    r"|[吗么呢]\s{0,4}$|可以[^\n]{1,40}不\s{0,4}$",
    re.IGNORECASE,
)
_NAME = re.compile(r"[\w.-]{1,80}", re.ASCII)
_CLAUSE = re.compile(r"[,;.!](?=\s|$)|\u3002|(?<=\?)\s")
_A_CLAIM, _A_QUESTION = 3, 4
"""Chosen: words of a clause that claims something ("Thanks a lot" does not), and of a question."""
_OF_THE_FIELD = (
    "model", "train", "fine-tun", "finetun", "inference", "python", "模型", "训练", "推理",
)  # fmt: skip
"""A long text without any of these, and without a question, is about something else."""
WEB_ADDRESS = re.compile(r"https?://\S{1,300}")
_INTRODUCES = re.compile(
    r":\s{0,4}$|\b(?:nvidia-smi|output|below|here (?:is|are)|this is|attached)\b"
    r"|如下|以下|下面|这是",
    re.IGNORECASE,
)
"""It only says what is pasted beside it."""
_STANDS_STILL = re.compile(
    r"\bslow\w{0,5}\b|\bhangs?\b|\bstuck\b|freez|\bfroze|not respond"
    r"|卡住|卡死|不动|没反应|[很太好特极]慢",
    re.IGNORECASE,
)
"""What people say of a program that prints no error."""
_FAILS = re.compile(
    r"(?<!\bno )(?<!without )(?<!without any )(?<![\w-])\w{0,20}errors?\b(?! (?:bars?|rates?)\b)"
    r"|(?<!\bno )\bfail(?:s|ed|ing|ures?)?\b|(?<!\bno )\bcrash|\b(?:hangs?|hung)\b|hang住"
    r"|\b(?:freez(?:es|ing)|froze|breaks|broken?)\b|\b(?:has|have) lost\b"
    r"|(?:n['\u2019]t|\bnot|\bnever|\bd(?:id|oes)nt) work"
    r"|\b(?:always|stays?|shows|remains?) pending\b"
    r"|\bshuts? (?:itself )?(?:down|off)\b"
    r"|报错|错误|失败|卡死|卡住|崩溃|无法释放|(?<!能)不能用|用不了|エラー"
    r"|\u043e\u0448\u0438\u0431\u043a|\u0432\u044b\u043b\u0435\u0442\u0430"
    r"|\u0437\u0430\u0432\u0438\u0441|\u043d\u0435 \u0440\u0430\u0431\u043e\u0442\u0430",
    re.IGNORECASE,
)
"""Something fails, whatever it is; the Russian words say error, crashes, hangs, does not work."""
_FAILING = (
    "error", "fail", "crash", "hang", "hung", "freez", "froze", "break", "broke", " lost", "work",
    "shut", "pending",
    "无法释放", "报错", "错误", "失败", "卡死", "卡住", "崩溃", "不能用", "用不了",
    "\u043e\u0448\u0438\u0431\u043a", "\u0432\u044b\u043b\u0435\u0442\u0430",
    "\u0437\u0430\u0432\u0438\u0441", "\u0440\u0430\u0431\u043e\u0442\u0430", "エラー",
)  # fmt: skip
# Beside the GPUs of a driver that works, "it runs on the CPU" is a complaint.
_ON_CPU = re.compile(r"\b(?:us(?:es?|ing)|on|device)\W{1,3}(?:the |my )?cpu\b", re.IGNORECASE)
_READ_BY_WORDING = 200
"""Lines, chosen: more than the second reader looks at, which stops after 4,000 characters."""
_WITHOUT_A_VOICE = PRINTED | {Role.INFO, Role.OTHER}
_ROLES = (Role.SAID, Role.ERROR, Role.WARNING)


# What a program reports, or somebody says, of CUDA, its libraries and GPUs.

_MOST_OF_PARTS = 50  # chosen: lines with such a word; 12 change no answer on 752 labelled tickets
_ERROR_WORDS = (
    "cuda error", "gpu api call", "cuda failure", "cudaerror", "_status_", "cuda runtime error",
    "cuda driver error", "nccl error", "nccl failure", "nvrtc: error", "ncclunhandledcudaerror",
    "ncclsystemerror", "ncclinternalerror", "ncclinvalid", "ncclremoteerror", "cudnn error",
    "cublas error", "cusolver error", "cusparse error", "cufft error", "nvrm: xid",
    "no devices were found", "compiler identification", "cuinit", "cudevice", "cuctx", "cumem",
    "cuipc", "cumodule", "culaunch", "custream", "cuevent", "cufile", "cudamalloc", "cudaset",
    "cudaget", "cudadevice", "cudamem", "cudastream", "cudalaunch", "cudaevent",
)  # fmt: skip
_UNQUOTED_WORDS = (
    "out of memory", "out of cuda memory", "out of gpu memory", "out of video memory",
    "out of vram", "oom", "illegal memory access",
    "error 80", "800 error", "801 error", "802 error", "803 error", "804 error",
)  # fmt: skip
"""What people write about such an error without quoting it."""
_PART_FAILS_WORDS = (
    "fail", "crash", "time out", "times out", "timed out", "timeout", " hang", "unavailable",
    "not available", "t available", "not detect", "t detect", "not found", "not recogni",
    "not initiali", "disappear", "falls off", "fell off", "fallen off", "unknown error",
    "segfault", "segmentation fault", "no devices", "turned false", "became false", "ecc error",
    "error ", "not work", "t work",
)  # fmt: skip
# Not as a part of a path, of a module or of an option: there it is only a name.
_PART = (
    r"(?<![/\w.-])(?:CUDA|cuDNN|cuBLAS|NCCL|NVML|NVLink|libcuda(?:\.so[.\d]{0,12})?"
    r"|nvidia[- ]smi|(?:nvidia |gpu )?driver)\b(?![/.-]\w)"
)
_OF_PART = (
    r"(?:fail(?:s|ed|ures?|ing)?|crash(?:es|ed)?|time[sd] out|timeouts?(?! ?[=:(])|hangs?"
    r"|unavailable|unknown error|error \d{1,3}|seg(?:mentation )?faults?|(?:says|finds) no devices"
    r"|(?:not|n.t)(?: longer| be)? (?:available|detect(?:ed)?|found|recogni[sz]ed|initiali[sz]ed?"
    r"|work(?:s|ing)?)|(?:turned|became) False)\b"
)
_GPU_ERROR = re.compile(
    r"\b(?:CUDA (?:runtime |driver )?error\b|CUDA failure\b|NCCL (?:error|failure)\b"
    r"|cudaError\w{3,60}|nvrtc: error\b|nccl(?:UnhandledCuda|System|Internal|Remote)Error\b"
    r"|ncclInvalid(?:Argument|Usage)\b|cu(?:DNN|BLAS|SOLVER|SPARSE|FFT) error\b|NVRM: Xid \("
    r"|(?-i:\bcu(?:da)?(?:Init|Device|Ctx|Mem|Malloc|Ipc|Module|Launch|Stream|Event|File|Set|Get)"
    r"\w{0,40})(?:\([^()]{0,80}\))? (?:has )?(?:fail|error\b|returned (?:error|[1-9]))"
    r"|(?:CUBLAS|CUDNN|CUSPARSE|CUSOLVER|CUFFT|CURAND)_STATUS_(?!SUCCESS)[A-Z]\w{2,60}"
    r"|CUDA compiler identification is unknown"
    r"|Gpu API call(?: \(|\) ))|^\W{0,9}no devices were found\W{0,3}$",
    re.IGNORECASE,
)
_UNQUOTED = re.compile(
    r"\bout of (?:(?:CUDA |GPU |video )?memory|VRAM)\b|\bOOMs?\b|\billegal memory access\b"
    r"|\berror 80[0-4]\b|\b80[0-4] errors?\b",
    re.IGNORECASE,
)
# What fails and how, within 24 characters: farther apart they belong to different clauses.
_PART_FAILS = re.compile(
    rf"{_PART}.{{0,24}}\b{_OF_PART}|\b(?:error \d{{1,3}}|crash(?:es|ed)?|seg(?:mentation )?faults?"
    rf"|failures?) (?:from|in|of) (?:the )?{_PART}"
    r"|\bGPU.{0,24}\b(?:disappears?|disappeared|f[ae]ll(?:s|en)? off)\b|\bECC errors?\b"
    r"|\bis_available\b.{0,20}\b(?:turned|became|now) False\b",
    re.IGNORECASE,
)
_NO_FAILURE = SILENT | {Role.CODE, Role.JOURNAL}
_NO_ERROR = _NO_FAILURE - {Role.KERNEL, Role.JOURNAL}
"""An Xid is an error in the kernel's log, too, and so is what CUDA says in the journal."""


def first_gpu_error(text: Text) -> Line | None:
    """Return the first line that reports an error of CUDA, cuBLAS, cuDNN or NCCL."""
    return _first(text, _ERROR_WORDS, _GPU_ERROR, _NO_ERROR)


def first_complaint(text: Text) -> Line | None:
    """Return the first line that says in words that CUDA, its libraries or a GPU fail."""
    line = _first(text, _UNQUOTED_WORDS, _UNQUOTED, _NO_FAILURE)
    return line or _first(text, _PART_FAILS_WORDS, _PART_FAILS, _NO_FAILURE)


def _first(
    text: Text, literals: tuple[str, ...], form: re.Pattern[str], but: frozenset[Role]
) -> Line | None:
    for index in text.find(*literals, most=_MOST_OF_PARTS):
        line = text.lines[index].text
        found = "NCCL INFO" not in line and form.search(line)
        if found and role_of(text, index) not in but:
            return text.lines[index]
    return None


def first_complaint_of_environment(text: Text) -> Line | None:
    """Return the first line that says that the GPU is not used, or what hangs or is not installed.

    None for a wish or a proposal.
    """
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
    return _error_in_a_picture(text)


def _error_in_a_picture(text: Text) -> Line | None:
    """Return the line that says of a picture that it shows an error, which nobody can read here."""
    for index in text.find(*_PICTURE, most=_MOST):
        for line in reversed(text.lines[max(0, index - _ABOVE) : index + 1]):
            if _ERROR.search(WEB_ADDRESS.sub("", line.text[:_LONGEST])):
                return line
    return None


def first_failure_told(text: Text) -> Line | None:
    """Return the first line that says that anything fails; None for a wish or a proposal.

    Most of these are about a program. But of what failed nothing was examined. Beyond the title it
    looks at what people say: programs write of errors where none occurred.
    """
    if is_wish(text):
        return None
    speaks, left = somebody_speaks(text.lines), _MOST_CHARACTERS
    for index in text.find(*_FAILING, most=_MOST):
        line, is_title = text.lines[index], index < TITLE
        left -= len(line.text)
        if left < 0 or not (speaks or is_title):
            return None
        fails = any(
            _FAILS.search(sentence[:_LONGEST])
            for sentence in _SENTENCE.split(line.text[:_BEGINNING])
            if not _is_question(sentence)
        )
        role = role_of(text, index)
        if fails and role in (_ROLES if is_title else (Role.SAID,)) and not is_statement(line.text):
            return line
    return None


def is_of_several(complaint: str) -> bool:
    """Whether nodes or ranks hang or time out: that CUDA works on one says nothing of it."""
    return any(_SEVERAL.search(part[:_LONGEST]) for part in _SENTENCE.split(complaint))


def is_wish(text: Text) -> bool:
    """Whether a text is by its title a wish, a proposal or a question about the documentation."""
    return _wishes(text.lines[:TITLE])


def _wishes(lines: Sequence[Line]) -> bool:
    return any(_WISH.match(line.text.lstrip("# *")) for line in lines)


def tells_something(text: Text) -> bool:
    """Whether somebody asks, wishes or describes something, not only claims it in a few words.

    Of what is claimed in a few words nothing can be examined. An inventory of facts tells nothing.
    """
    if is_wish(text):
        return True
    named, short = names_a_part(text), only_asks(text)
    if not short and (named or text.held(_OF_THE_FIELD)):
        return True
    asking = [line.text for line in text.lines if _may_ask(line.text) and _ASKS.search(line.text)]
    if not short:
        return bool(asking) or _wishes(text.lines)
    asked = sum(len(_WORD.findall(line, 0, _BEGINNING)) for line in asking)
    if asked < _A_QUESTION or (named and any(map(_WHY.search, asking))):
        return False
    return not any(map(_claims, asking))


def only_asks(text: Text) -> bool:
    """Whether a text that tells something has so few words that it can only be a question."""
    words = 0
    for index, line in enumerate(text.lines):
        words_of_line = WEB_ADDRESS.sub("", line.text) if "://" in line.text else line.text
        if _PROSE.match(words_of_line) and role_of(text, index) not in PRINTED:
            words += len(_WORD.findall(words_of_line, 0, _BEGINNING))
            if words >= _ENOUGH:
                return False
    return True


def is_vague(complaint: str) -> bool:
    """Whether a complaint says that something fails, but nothing of a GPU or an installation."""
    return not _complains(complaint)


def states_something(text: Text) -> bool:
    """Whether somebody states something, not only asks."""
    return any(
        _claims(line.text) and role_of(text, index) not in PRINTED
        for index, line in enumerate(text.lines[:_READ_BY_WORDING])
    )


def is_only_printed(text: Text) -> bool:
    """Whether programs printed every line, whatever the state of things: nobody says anything."""
    return all(
        role_of(text, index) in _WITHOUT_A_VOICE
        for index, line in enumerate(text.lines[:_READ_BY_WORDING])
        if line.text.strip()
    )


def _may_ask(line: str) -> bool:
    """Whether a line has a question mark or another script: a log has neither in most lines."""
    return "?" in line or not line.isascii()


def short_complaint(text: Text, *, beside_gpus: bool) -> Line | None:
    """Return the first line in which a person says in a few words that something is wrong.

    ``beside_gpus``: the text shows the GPUs of a driver that works. What else people say beside
    that, without a question, is what they think is wrong.
    """
    for index, line in enumerate(text.lines):
        start = line.text[:_LONGEST]
        wrong = _STANDS_STILL.search(start) is not None or (
            beside_gpus and (_WHY.search(start) or _ON_CPU.search(start) or _is_stated(start))
        )
        if wrong and role_of(text, index) in _ROLES:
            return line
    return None


def _is_stated(line: str) -> bool:
    """Whether a line is a sentence that states something; indented lines are of a listing."""
    return not line[:1].isspace() and _PROSE.match(line) is not None and _claims(line)


def _claims(line: str) -> bool:
    """Whether a line states something, also beside a question: "it is slow, is that normal?"."""
    return any(
        not (clause.endswith("?") or is_statement(clause) or _NAME.fullmatch(clause))
        and _ASKS.search(clause) is None
        and _INTRODUCES.search(clause) is None
        and len(_WORD.findall(clause)) >= _A_CLAIM
        for clause in map(str.strip, _CLAUSE.split(line[:_BEGINNING]))
    )


def _complains(line: str) -> bool:
    return any(
        _COMPLAINT.search(sentence[:_LONGEST])
        for sentence in _SENTENCE.split(line)
        if not _is_question(sentence)
    )


def _is_question(sentence: str) -> bool:
    """Whether it asks for something; who asks why complains."""
    return sentence.rstrip().endswith("?") and _WHY.search(sentence) is None
