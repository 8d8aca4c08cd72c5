"""Passwords, tokens and keys, which a text shows by what stands around them, or by how they begin.

Every repeat in a pattern has a limit, and no two that match the same stand side by side.
"""

import functools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from gpucheck.facts.system import HIDDEN

# Forms in which private values stand in texts of others: how they are written and tried.


class Shape(NamedTuple):
    """A form, and words in lower case without one of which it cannot occur; () if there are none.

    Its groups are the private values. Of a group called ``list`` each item is one.
    """

    words: tuple[str, ...]
    pattern: str
    flags: int


def shape(words: str, pattern: str, flags: int = 0) -> Shape:
    """Return a form; ``words`` has ``|`` between its words."""
    return Shape(tuple(words.split("|")) if words else (), pattern, flags)


@functools.cache
def _compiled(shape: Shape) -> re.Pattern[str]:
    """Compile a form when it is first tried: all of them take 3 ms, and most texts have none."""
    return re.compile(shape.pattern, shape.flags)


class Shapes:
    """Forms in their order, of which those are tried that can occur in a text."""

    def __init__(self, *shapes: Shape) -> None:
        self._shapes = shapes
        self._always = {at for at, shape in enumerate(shapes) if not shape.words}
        self._places: dict[str, list[int]] = {}
        for at, shape in enumerate(shapes):
            for word in shape.words:
                self._places.setdefault(word, []).append(at)

    def fitting(self, text: str) -> Iterator[re.Pattern[str]]:
        """Yield the patterns that may find something in a text."""
        lower = text.lower()
        found = set(self._always)
        for word, places in self._places.items():
            if word in lower:
                found.update(places)
        return (_compiled(self._shapes[at]) for at in sorted(found))

    def values(self, text: str) -> Iterator[str]:
        """Yield what is private in a text, without the full stop of its sentence."""
        return (value for _group, value in self.named(text))

    def named(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield what is private in a text, as ``values``, after the name of its group."""
        for pattern in self.fitting(text):
            for found in pattern.finditer(text):
                for group, name in found.groupdict().items():
                    yield from ((group, part) for part in parts_of(group, name or ""))


def parts_of(group: str, name: str) -> Iterator[str]:
    """Yield the values of a group; a list is split at brackets, ports, commas and blanks."""
    parts = _OF_LIST.split(name) if group == "list" else (name,)
    return (part.rstrip(".-") for part in parts if part)


_OF_LIST = re.compile(r"\[[^\]]{0,1000}\]?|:\d{1,5}|[,\s\]]+")


_NAMES_OF_SECRETS = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|authorization|auth|"
    r"(?:api|access|private|secret|account|ssh|encryption|signing|license)[_-]?key)"
)
# A secret ends at quotes, blanks and brackets; two characters are a count or a flag.
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


# Addresses of package indexes, as they may be kept: without a login, a query or a key.

# A login, a query and what follows # may hold secrets, so each is a group that can be left out.
# Characters that are not in here make the whole address unknown instead of half hidden.
_FORM = (
    r"(?P<scheme>[Hh][Tt][Tt][Pp][Ss]?)://(?P<login>[^/@\s\\]{0,1024}@)?"
    r"(?P<place>(?:[A-Za-z0-9][A-Za-z0-9.-]{0,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?)"
    r"(?P<path>(?:/[A-Za-z0-9._~%+-]{0,255}){0,32})(?P<rest>[?#][^\s@]{0,4096})?"
)
_LONGEST = 2048  # chosen: longer than any index's address; what is longer is not kept at all
# Chosen: shorter than any usual token (GitLab's have 26 characters, GitHub's 40), and longer than a
# version or a CUDA tag in a path.
_SHORTEST_KEY = 24
_CONDA_TOKEN = "t"  # noqa: S105  # anaconda.org has https://host/t/TOKEN/channel


def public_address(address: str) -> str:
    """Return an http(s) address without what may be secret; "" if it has another form.

    A login and a query are left out. A part of the path that looks like a key is hidden. The last
    slash is left out as well, so that equal places have equal addresses.
    """
    found = re.fullmatch(_FORM, address) if len(address) <= _LONGEST else None
    if found is None:
        return ""
    parts = found["path"].split("/")
    kept = [
        HIDDEN if _is_key(part) or parts[at - 1 : at] == [_CONDA_TOKEN] else part
        for at, part in enumerate(parts)
    ]
    return f"{found['scheme'].lower()}://{found['place'].lower()}{'/'.join(kept).rstrip('/')}"


def is_plain(address: str) -> bool:
    """Whether an http(s) address has neither a login nor a query, and nothing that is odd."""
    found = re.fullmatch(_FORM, address) if len(address) <= _LONGEST else None
    return found is not None and not found["login"] and not found["rest"]


def names_a_build(address: str) -> bool:
    """Whether an address ends with a build of PyTorch: ``.../whl/cu128``."""
    return re.fullmatch(r"cpu|xpu|cu[0-9]{2,3}|rocm[0-9.]+", address.rpartition("/")[2]) is not None


def place_and_path(address: str) -> tuple[str, str]:
    """Return host with port, and path, of an address from :func:`public_address`."""
    place, slash, path = address.partition("://")[2].partition("/")
    return place, slash + path


def _is_key(part: str) -> bool:
    return (
        len(part) >= _SHORTEST_KEY
        and any(char.isdecimal() for char in part)
        and any(char.isalpha() for char in part)
    )
