"""Private values that a text of others shows by their form: logins, keys, addresses, names.

A ticket tells no field from another, so what is private in it is known by what stands around it.
Every repeat has a limit, and no two that match the same stand side by side.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from gpucheck.facts.environment import HIDDEN

Kind = Literal["user", "host"]

_NAMES_OF_SECRETS = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|authorization|auth|"
    r"(?:api|access|private|secret|account|ssh|encryption|signing|license)[_-]?key)"
)
_VALUE = r"[^\s\"'`,;&<>()\[\]{}]{3,512}"
_SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?P<secret>.*)", re.DOTALL),
    # password=x, "HF_TOKEN": "x", --api-key x; a count or a class is no secret
    re.compile(
        rf"(?i)(?<![a-z]){_NAMES_OF_SECRETS}[\"']?(?:\s{{0,3}}[=:]\s{{0,3}}[\"']?|(?<=key)\s|"
        rf"(?<=word)\s(?=\S*\d))(?!\d{{1,9}}\b|none\b|null\b|true\b|false\b|bearer\b|basic\b"
        rf"|\(hidden|<)(?P<secret>{_VALUE})"
    ),
    re.compile(r"(?i)\b(?:bearer|basic)\s(?P<secret>[\w.~+/=-]{8,2048})"),
    # key=x: only what looks like a key
    re.compile(r"(?i)\bkey[\"']?\s?[=:]\s?[\"']?(?P<secret>(?=[\w+/=-]{0,40}\d)[\w+/=-]{16,300})"),
    # ://user:password@, ://token@
    re.compile(r"://(?P<secret>[^\s/@\"'<>]{1,512})@"),
    # the token of a channel of conda
    re.compile(r"://[^\s\"']{1,99}?/t/(?P<secret>[\w-]{3,256})"),
    re.compile(r"(?i)[?&](?:[\w-]{0,40}(?:sig|signature|key|token|secret))=(?P<secret>[^\s&\"']{3,512})"),
    re.compile(
        r"(?<![\w-])(?P<secret>(?:sk|pk|rk|whsec|nvapi|hvs|npm|dckr_pat|dop_v1|shpat|sntrys|lsv2)"
        r"[_.-](?=[\w-]{0,200}\d)[\w-]{6,200}|gh[pousr]_\w{8,100}|github_pat_\w{8,100}"
        r"|gl(?:pat|dt|rt|ft|ptt)-[\w-]{8,100}|hf_[A-Za-z0-9]{8,100}|xox[a-z]-[\w-]{8,200}"
        r"|(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{12,20}|AIza[\w-]{20,60}|ya29\.[\w-]{8,300}"
        r"|pypi-AgE[\w-]{8,300}|eyJ[\w-]{8,2000}\.[\w.-]{2,4000}|SG\.[\w-]{8,60}\.[\w-]{8,100}"
        r"|AGE-SECRET-KEY-\w{8,100})"
    ),
)  # fmt: skip
_MAIL = re.compile(
    r"(?<![\w.+/@-])(?P<user>[A-Za-z_][\w.+-]{0,63})@(?P<host>[A-Za-z0-9][\w.-]{0,252})(?![\w@:]*@)"
)
_NO_HOSTS_OF_MAIL = re.compile(
    r"sha(?:256|512)\b.*|[A-Z][A-Z0-9]{1,20}_[\w.]{1,40}|v?\d[\w.]{0,40}"
)
"""Digests of images, versions of symbols (``memcpy@GLIBC_2.14``) and of packages."""
_NO_HOST = re.compile(
    r"(?i)[\d.:x-]{1,253}|(?:eth|en[opsx]|eno|ib|bond|br|docker|lo|wl|veth|mlx|rank|gpu|cuda|fe|tid"
    r"|pid)[\da-f_]{0,8}(?:[a-z]\d{1,4}){0,3}|.*\.(?:py|pyx|cpp|cc|cu|cuh|c|h|hpp|rs|go|js|so|sh|ya?ml"
    r"|json|toml|txt|log|md|html)|\w+_\w+|[A-Z_]+|[a-z]\d{3,}"
)
"""Numbers, interfaces and adapters, ranks, files with a line, identifiers of a program."""
_NAME = r"[A-Za-z0-9][\w.-]{0,252}"
_HOSTS = (
    re.compile(rf"(?m)^\s{{0,8}}(?P<host>{_NAME}):\d{{1,10}}:\d{{1,10}} (?:\[\d|NCCL)"),  # NCCL
    re.compile(  # syslog, journalctl, dmesg -T of several
        r"(?<!\S)(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.+Z-]{8,32}) "
        rf"(?P<host>{_NAME}) [\w./@-]{{1,60}}(?:\[\d{{1,10}}\])?:"
    ),
    re.compile(  # host: x, hostname=x, MASTER_ADDR=x
        r"(?i)(?<![\w.])(?:host(?:[_ ]?name)?|node(?:[_ ]?name|list)?|server|master_addr|computer"
        rf"[_ ]?name|rdzv[_-]endpoint)[\"']?\s{{0,8}}[:=]\s{{0,3}}[\"'(\[]?(?P<host>{_NAME})"
    ),
    re.compile(  # host x-1, tcp://x:1, to x:29500, [x]:29500, x<45678>
        r"(?i)(?:\b(?:host|hostname|node|peer|server) [\"'(\[]?(?=\S{0,99}[\d.-])"
        rf"(?P<host>{_NAME})"
        rf"|\b[a-z]{{2,9}}://(?:\(hidden\)@)?\[?(?P<in_url>{_NAME})"
        rf"|\bto \[?(?P<reached>{_NAME})\]?:\d{{2,5}}\b|\[(?P<bracketed>{_NAME})\]:\d{{2,5}}\b"
        rf"|(?<![\w.<:%-])(?P<angled>{_NAME})<\d{{1,5}}>)"
    ),
    re.compile(  # only an own network has such names
        r"(?i)(?<![\w./-])(?P<host>[a-z0-9][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){0,6}"
        r"\.(?:internal|intranet|corp|lan|localdomain|local|hpc|cluster|intra))(?![\w.(-])"
    ),
    re.compile(rf"(?m)^(?:srun|slurmstepd|slurmd)[^:\n]{{0,60}}: error: (?P<host>{_NAME}):"),
)  # fmt: skip
_NO_USERS = (
    "is|has|does|can|cannot|may|must|should|did|was|will|would|who|that|which|needs|account|code|"
    "program|process|space|mode|group|name|id|to|in|or|and|of|for|with|data|input|level|session"
)
"""What also follows the word *user* in a sentence."""
_USERS = (
    re.compile(
        r"(?i)(?<![\w.])(?:user(?:[_ ]?name)?|logname|login|owner)[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
        r"(?P<user>[A-Za-z_][\w.-]{0,31})"
    ),
    re.compile(
        r"(?i)(?:\buser [\"'](?P<quoted>[\w.-]{1,32})[\"']"
        r"|\b(?:for|as|by|to) user (?P<named>[\w.-]{1,32})"
        r"|\b(?:owned|submitted|started) by (?P<by>[a-z_][\w.-]{0,31})"
        rf"|\buser (?!(?:{_NO_USERS})\b)(?P<user>[a-z_][\w.-]{{0,31}})"
        r" (?:is|has|does|can|cannot|may|lacks)\b)"
    ),
    re.compile(r"\b[ug]id=\d{1,10}\((?P<user>[\w.-]{1,32})\)"),
    re.compile(r"\bsudo(?:\[\d{1,10}\])?:\s{1,8}(?P<user>[\w.-]{1,32}) : "),
    re.compile(
        r"(?m)(?<!\S)[-dlcb][rwxsStT-]{9}[.+@]?\s{1,4}\d{1,6}\s(?P<user>[\w.-]{1,32})\s{1,16}"
        r"(?P<group>[\w.-]{1,32})\s{1,16}\d"
    ),
    re.compile(r"(?i)(?:^|[\s\"'=(])(?:/home|/users|[a-z]:\\users)[/\\](?P<user>[\w.-]{1,32})"),
)  # fmt: skip
_V4 = re.compile(
    r"(?<![\w.+-])(?P<lead>(?:[A-Za-z][\w)-]{0,40}[ =:~<>!]{1,16})?)"
    r"(?P<address>\d{1,3}(?:\.\d{1,3}){3})(?![\w-]|\.\d)(?P<port>(?:<\d|\]?:\d{2,5}\b|/\d{1,2}\b)?)"
)
_OF_NETWORK = re.compile(
    r"(?i)(?:addr\w*|address|peer|host\w*|ip|inet|from|to|at|on|via|connect\w*|remote|server|"
    r"socket|using|bind|listen\w*|gateway|node|endpoint|master\w*)[ =:~<>!]{1,16}"
)
_OF_VERSIONS = re.compile(r"(?i)(?:.*(?:version|ver|cu\d\d|cudnn|nvidia|lib|curand|cublas|cufft)"
                          r"[\w)-]{0,40}[ =:~<>!]{1,16}|.*[=~<>!]=)")  # fmt: skip
_V6 = re.compile(
    r"(?i)(?<![\w:.])(?P<address>(?:[23][0-9a-f]{3}|fe[89ab][0-9a-f]|f[cd][0-9a-f]{2}|64)"
    r"(?::[0-9a-f]{0,4}){2,7}|::ffff:[\d.]{7,15})(?:%\w{1,15})?(?![\w:])"
)
_MAC = re.compile(r"(?i)(?<![\w:])(?P<address>(?:[0-9a-f]{2}:){5}[0-9a-f]{2})(?![\w:])")
_BYTE, _LOOPBACK = 255, 127
_FIRST_OF_VERSIONS = 13
"""Four numbers are a version of a CUDA library (cuRAND 10.3.5.147) up to this first one, unless
something around them says that they are an address."""


def names(text: str) -> Iterator[tuple[Kind, str]]:
    """Yield the names of users and hosts that stand where such names stand.

    A secret may look like a name: the text must be one without.
    """
    for pattern in _fitting(_HOSTS, text):
        for found in pattern.finditer(text):
            yield from (("host", one) for one in _of(found) if not _NO_HOST.fullmatch(one))
    for pattern in _fitting(_USERS, text):
        for found in pattern.finditer(text):
            yield from (("user", one) for one in _of(found))
    for found in _MAIL.finditer(text):
        if _is_mail(found):
            yield "user", found["user"]
            yield "host", found["host"].rstrip(".-")


def _of(found: re.Match[str]) -> Iterator[str]:
    """Return the name that a pattern has found, without the full stop of its sentence."""
    return (one.rstrip(".-") for one in found.groupdict().values() if one)


_WORDS_BEFORE: Mapping[re.Pattern[str], tuple[str, ...]] = {
    _SECRETS[0]: ("private key",),
    _SECRETS[1]: ("pass", "pwd", "secret", "token", "credential", "auth", "key"),
    _SECRETS[2]: ("bearer", "basic"),
    _SECRETS[3]: ("key",),
    _SECRETS[4]: ("://",),
    _SECRETS[5]: ("/t/",),
    _SECRETS[6]: ("sig", "key", "token", "secret"),
    _HOSTS[0]: ("nccl", "["),
    _HOSTS[2]: ("host", "node", "server", "master_addr", "computer", "rdzv"),
    _HOSTS[3]: ("host", "node", "peer", "server", "://", "to ", "]:", "<"),
    _HOSTS[5]: ("error:",),
    _USERS[0]: ("user", "logname", "login", "owner"),
    _USERS[1]: ("user", "by "),
    _USERS[2]: ("id=",),
    _USERS[3]: ("sudo",),
    _USERS[5]: ("/home", "users"),
}
"""In lower case, one of the words without which a pattern finds nothing. Most texts have none."""


def _fitting(patterns: Iterable[re.Pattern[str]], text: str) -> Iterator[re.Pattern[str]]:
    """Yield the patterns that may find something in a text."""
    lower = text.lower()
    for pattern in patterns:
        words = _WORDS_BEFORE.get(pattern)
        if words is None or any(word in lower for word in words):
            yield pattern


def secrets(text: str) -> Iterator[str]:
    """Yield the passwords, tokens and keys in a text."""
    for pattern in _fitting(_SECRETS, text):
        for found in pattern.finditer(text):
            yield from found.groupdict().values()


def without_secrets(text: str) -> str:
    """Return the text without passwords, tokens and keys."""
    for pattern in _fitting(_SECRETS, text):
        text = pattern.sub(_without_secret, text)
    return text


def hidden(text: str, pseudonym: Callable[[str], str]) -> str:
    """Return the text without secrets and mail addresses, and with pseudonyms for addresses."""
    text = without_secrets(text)
    if "@" in text:
        text = _MAIL.sub(_without_mail, text)
    text = _V6.sub(lambda found: _replaced(found, pseudonym), text)
    text = _MAC.sub(lambda found: _replaced(found, pseudonym), text)
    return _V4.sub(lambda found: _replaced_v4(found, pseudonym), text)


def _is_mail(found: re.Match[str]) -> bool:
    return _NO_HOSTS_OF_MAIL.fullmatch(found["host"]) is None


def _without_mail(found: re.Match[str]) -> str:
    """Hide ``user@host``; the full stop of its sentence stays."""
    ending = found["host"][len(found["host"].rstrip(".-")) :]
    return f"{HIDDEN}{ending}" if _is_mail(found) else found[0]


def _without_secret(found: re.Match[str]) -> str:
    start, end = (place - found.start() for place in found.span("secret"))
    return found[0][:start] + HIDDEN + found[0][end:]


def _replaced(found: re.Match[str], pseudonym: Callable[[str], str]) -> str:
    return found[0].replace(found["address"], pseudonym(found["address"]), 1)


def _replaced_v4(found: re.Match[str], pseudonym: Callable[[str], str]) -> str:
    numbers = [int(one) for one in found["address"].split(".")]
    is_of_nobody = numbers[0] == _LOOPBACK or not any(numbers)
    if max(numbers) > _BYTE or is_of_nobody or _is_version(found, numbers[0]):
        return found[0]
    return _replaced(found, pseudonym)


def _is_version(found: re.Match[str], first: int) -> bool:
    if found["port"]:
        return False
    if _OF_VERSIONS.fullmatch(found["lead"]):
        return True
    return first <= _FIRST_OF_VERSIONS and not _OF_NETWORK.fullmatch(found["lead"])
