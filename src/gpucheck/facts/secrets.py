"""Passwords, tokens and keys, which a text shows by what stands around them, or by how they begin.

Every repeat in a pattern has a limit, and no two that match the same stand side by side.
"""

import re
from collections.abc import Iterator
from typing import Any

from gpucheck.facts.environment import HIDDEN
from gpucheck.facts.text_shapes import Shapes, shape

_NAMES_OF_SECRETS = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|authorization|auth|"
    r"(?:api|access|private|secret|account|ssh|encryption|signing|license)[_-]?key)"
)
_VALUE = r"[^\s\"'`,;&<>()\[\]{}]{3,512}"
_SECRETS = Shapes(
    shape("private key", r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?P<secret>.*)", re.DOTALL),
    # password=x, "HF_TOKEN": "x", --api-key x; a count or a class is no secret
    shape(
        "pass|pwd|secret|token|credential|auth|key",
        rf"(?i)(?:(?<![a-z]){_NAMES_OF_SECRETS}|(?<=[a-z])(?<!no)passw(?:or)?d"
        r"|(?-i:(?<=[a-z])(?:Secret|Token|ApiKey|AccessKey|SecretKey)))"
        r"[\"']?(?:\s{0,3}[=:]\s{0,3}[\"']?|(?<=key)\s|(?<=word)\s(?=\S*\d))"
        r"(?!\d{1,9}\b|none\b|null\b|true\b|false\b|bearer\b|basic\b|\(hidden|<)"
        rf"(?P<secret>{_VALUE})",
    ),
    shape("cookie", r"(?i)\b(?:set-)?cookie2?: (?P<secret>[^\n\"']{4,2048})"),
    shape("bearer|basic", r"(?i)\b(?:bearer|basic)\s(?P<secret>[\w.~+/=-]{8,2048})"),
    # key=x: only what looks like a key
    shape(
        "key",
        r"(?i)\bkey[\"']?\s?[=:]\s?[\"']?(?P<secret>(?=[\w+/=-]{0,40}\d)[\w+/=-]{16,300})",
    ),
    # ://user:password@, ://token@
    shape("://", r"://(?P<secret>[^\s/@\"'<>]{1,512})@"),
    # the token of a channel of conda
    shape("/t/", r"://[^\s\"']{1,99}?/t/(?P<secret>[\w-]{3,256})"),
    shape(
        "sig|key|token|secret",
        r"(?i)[?&](?:[\w-]{0,40}(?:sig|signature|key|token|secret))=(?P<secret>[^\s&\"']{3,512})",
    ),
    shape(
        "",
        r"(?<![\w-])(?P<secret>(?:sk|pk|rk|whsec|nvapi|hvs|npm|dckr_pat|dop_v1|shpat|sntrys|lsv2)"
        r"[_.-](?=[\w-]{0,200}\d)[\w-]{6,200}|gh[pousr]_\w{8,100}|github_pat_\w{8,100}"
        r"|gl(?:pat|dt|rt|ft|ptt)-[\w-]{8,100}|hf_[A-Za-z0-9]{8,100}|xox[a-z]-[\w-]{8,200}"
        r"|(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{12,20}|AIza[\w-]{20,60}|ya29\.[\w-]{8,300}"
        r"|pypi-AgE[\w-]{8,300}|eyJ[\w-]{8,2000}\.[\w.-]{2,4000}|SG\.[\w-]{8,60}\.[\w-]{8,100}"
        r"|AGE-SECRET-KEY-\w{8,100}|\d{8,10}:AA[\w-]{30,40}"
        # what a cloud calls an instance, a disk, a network
        r"|(?:i|vol|vpc|subnet|eni|snap|fs|sg)-[0-9a-f]{8}(?:[0-9a-f]{9})?(?![\w-])"
        r"|arn:aws[\w-]{0,12}:[\w:./*-]{8,300})",
    ),
    # -p of a program whose password may stand there
    shape(
        "sshpass|mysql|mariadb|login|ldapsearch|smbclient",
        r"\b(?:sshpass|mysql\w{0,9}|mariadb|(?:docker|podman) login|ldapsearch|smbclient)\b"
        rf"[^\n|;&]{{0,150}}?\s-[pw]\s?(?P<secret>(?!-){_VALUE})",
    ),
    shape(
        "curl",
        rf"\bcurl\b[^\n|;&]{{0,200}}?\s(?:-u|--user)\s?(?P<secret>[\w.+-]{{1,64}}:{_VALUE})",
    ),
    # of a GPU, a disk or a machine
    shape(
        "serial",
        r"(?i)\bserial(?:[ _]?(?:number|no\.?))?(?:[\"']?\s{0,40}[:=]\s{0,3}[\"']?|>)"
        r"(?P<secret>(?=[A-Z_-]{0,60}\d)[\w-]{5,64})",
    ),
    # of an InfiniBand adapter or port
    shape(
        "guid",
        r"(?i)\bguid[\"']?(?:\s{0,40}[:=]\s{0,3}|\s)"
        r"(?P<secret>(?:0x)?[0-9a-f]{16}\b|[0-9a-f]{4}(?::[0-9a-f]{4}){3}\b)",
    ),
    shape("accountname", r"\bAccountName=(?P<secret>\w{3,64})"),
    shape(
        "domain|logonserver",
        r"(?i)\b(?:user(?:dns)?domain(?:_roamingprofile)?|logonserver)=(?P<secret>[\w.\\-]{2,64})",
    ),
    shape(
        "projects/",
        r"(?<![\w./-])projects/(?P<secret>[\w.:-]{4,64})/(?:zones|regions|locations|global)/",
    ),
    shape(
        "/zones|/locations",
        r"/(?:zones|locations)/[\w-]{3,40}/\w{3,40}/(?P<secret>[\w.-]{2,64})",
    ),
    # the name before an address of mail
    shape(
        "@",
        r"(?P<secret>(?:[^\W\d_a-z][\w.'-]{0,40} ){1,3}[^\W\d_a-z][\w.'-]{0,40}) "
        r"<(?=[\w.+-]{1,64}@)",
    ),
)


def secrets(text: str) -> Iterator[str]:
    """Yield the passwords, tokens and keys in a text."""
    for pattern in _SECRETS.fitting(text):
        yield from (found["secret"] for found in pattern.finditer(text))


def without_secrets(text: str) -> str:
    """Return the text without passwords, tokens and keys."""
    for pattern in _SECRETS.fitting(text):
        text = pattern.sub(_without_secret, text)
    return text


def without_secrets_in(data: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return JSON-like data of others in which no text has one."""
    if isinstance(data, str):
        return without_secrets(data)
    if isinstance(data, dict):
        return {name: without_secrets_in(item) for name, item in data.items()}
    return [without_secrets_in(item) for item in data] if isinstance(data, list) else data


def _without_secret(found: re.Match[str]) -> str:
    start, end = (place - found.start() for place in found.span("secret"))
    return found[0][:start] + HIDDEN + found[0][end:]
