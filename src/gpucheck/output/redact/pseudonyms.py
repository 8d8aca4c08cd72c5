"""Pseudonyms for private values: of the same kind and form, equal if the values are equal."""

import bisect
import re
from collections.abc import Mapping

from gpucheck.facts.secrets import secrets, without_secrets
from gpucheck.facts.system import HIDDEN
from gpucheck.output.redact import shapes
from gpucheck.output.redact.patterns import (
    SUFFIX,
    WHOLE_UUID,
    ends_early,
    parts_of_words,
    places,
    whole_words,
)
from gpucheck.output.redact.public_names import (
    CHANNELS,
    HOMES,
    NO_USERS,
    ORDINARY,
    SYSTEM_ROOTS,
    index_hosts,
    is_of_index,
    is_public,
    is_public_host,
    is_public_package,
    is_setting,
)

_SEPARATORS = re.compile(r"([\\/]+)")
_SLASHES = re.compile("(/+)")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
# CUDA_VISIBLE_DEVICES takes a beginning of a UUID as well, so the rest may be of any length.
_UUID = re.compile(r"(MIG-GPU-|MIG-|GPU-)([^/\s]*)((?:/[0-9]{1,3}){0,2})", re.IGNORECASE)
_ADDRESS_OF_NOBODY = frozenset(("", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::"))  # noqa: S104
_SHORTEST_UUID = 8
"""Number of hexadecimal digits that identify a pseudonym."""
# Chosen: names of one or two letters occur in words and versions, so that replacing them would
# spoil the text. A secret of up to four characters would hide ordinary words.
_SHORTEST_WORD, _SHORTEST_SECRET = 3, 5
_DEEPEST_ROOT = max(root.count("/") for root in SYSTEM_ROOTS) + 1
_ADDRESS = re.compile(r"[\d.]*\.[\d.]*|[\da-fA-F:.]*:[\da-fA-F:.%\w]*")
"""One that was found as an address is none of the versions that look alike."""
_ONE_WORD = re.compile(r"[\w.+-]*")
"""Nothing in a single word shows that it is a name."""
_OF_PACKAGES = ("site-packages", "dist-packages")
_OWN = re.compile(
    r"(?:dir|file|user|host|domain|package|channel|address|process|image|cluster"
    r"|partition|account|job)\d{1,6}(?:\.\w{1,5})?"
)
"""What redaction itself has written."""
_IN_URL = r"(?P<rest>(?::\d{1,5})?(?:/[\w.~+@%-]{0,200}){1,30}(?:\?[^\s\"'<>]{0,500})?)?"


class Pseudonyms:
    """The pseudonyms of one snapshot, numbered by first appearance."""

    def __init__(self) -> None:
        self._components: dict[str, str] = {}
        self._spellings: dict[str, str] = {}
        self._users: dict[str, str] = {}
        self._lower_users: dict[str, str] = {}
        self._hosts: dict[str, str] = {}
        self._lower_hosts: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._things: dict[str, str] = {}
        """Processes, images, clusters and what is in them."""
        self._channels: dict[str, str] = {}
        self._indexes: dict[str, str] = {}
        self._packages: dict[str, str] = {}
        self._plain_packages: set[str] = set()
        self._package_lengths: set[int] = set()
        self._bodies: dict[str, str] = {}
        self._full_uuids: list[str] = []
        """Sorted, each once: those that begin with the same word are side by side."""
        self._odd_bodies: list[str] = []
        self._paths: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._finder: re.Pattern[str] | None = None
        self._names: dict[str, str] = {}
        self._of_commands: dict[str, str] = {}
        self._secrets: dict[str, str] = {}
        self._own: set[str] = set()
        self._of_owner: dict[str, str] = {}
        self._owner = parts_of_words(())
        self._words: re.Pattern[str] | None = None
        self._places: re.Pattern[str] | None = None
        self._new_hosts: frozenset[str] = frozenset()

    # Learning: which values are private, before any text is searched.

    def learn_host(self, name: str) -> None:
        """Learn the name of this machine, whole and up to its first dot."""
        if name in _ADDRESS_OF_NOBODY or name in self._hosts:
            return
        short, _, domain = name.partition(".")
        number = len(self._hosts) + 1
        if domain and not short:  # .example.com
            self._hosts[name] = f".domain{number}"
            return
        self._hosts.setdefault(short, f"host{number}")
        self._lower_hosts.setdefault(short.lower(), short)
        self._lower_hosts.setdefault(name.lower(), name)
        if name != short:
            end = f".domain{number}" if domain else "."
            self._hosts[name] = f"{self._hosts[short]}{end}"

    def learn_user(self, name: str) -> None:
        """Learn a user name."""
        if name and name not in NO_USERS:
            self._users.setdefault(name, f"user{len(self._users) + 1}")
            self._lower_users.setdefault(name.lower(), name)

    def learn_from(self, words: str) -> None:
        """Learn the addresses, and the names of users and hosts, that a text shows by its form."""
        if _ONE_WORD.fullmatch(words):
            return
        for secret in secrets(words):
            self.learn_secret(secret)
        for uuid in shapes.devices(words):
            self.learn_uuid(uuid)
        shown = without_secrets(words)
        shapes.without_addresses(shown, self.address)
        for kind, name in shapes.names(shown):
            if kind == "address":
                self.address(name)
            elif _identifies(name) and not is_public_host(name):
                self._learn_name(kind, name)

    def _learn_name(self, kind: shapes.Kind, name: str) -> None:
        if kind == "user":
            self.learn_user(name)
        elif kind == "channel":
            self.index(name)
        elif kind == "folder":
            self._folders[name] = self._component(name, windows=False)
        elif kind != "host":
            self._things.setdefault(name, f"{kind}{len(self._things) + 1}")
        elif name not in self._users:
            self.learn_host(name)

    def learn_secret(self, value: str) -> None:
        """Learn a value that is hidden wherever it stands."""
        if len(value) >= _SHORTEST_SECRET and value.lower() not in ORDINARY:
            self._secrets[value] = HIDDEN

    def learn_uuid(self, value: str) -> None:
        """Learn the whole UUID of a device; a prefix without anything after it identifies none."""
        found = _UUID.fullmatch(value)
        body = found[2] if found else value
        if not any(map(str.isalnum, body)):
            return
        if body not in self._bodies:
            self._bodies[body] = self._new_body()
        at = bisect.bisect_left(self._full_uuids, value)
        if self._full_uuids[at : at + 1] != [value]:
            self._full_uuids.insert(at, value)

    def learn_own(self, user: str, host: str) -> None:
        """Learn the user and the machine whom all is about: in texts they are found in any form."""
        self.learn_user(user)
        self.learn_host(host)
        self._own.update(name for name in (user, host, host.partition(".")[0]) if name)

    def settle(self) -> None:
        """End the learning; from now on texts are searched for all learned values."""
        self._texts.clear()
        self._values.clear()
        self._finder = self._new_finder()
        named = {
            **self._packages, **self._channels, **self._folders, **self._things, **self._users,
            **self._hosts,
        }  # fmt: skip
        names = {name: new for name, new in named.items() if _identifies(name)}
        addresses = {
            name: new
            for name, new in self._addresses.items()
            if _identifies(name) or _ADDRESS.fullmatch(name)
        }
        self._names = {**names, **addresses, **self._secrets}
        packages = {
            name: new for name, new in {**self._packages, **self._channels}.items() if name in names
        }
        self._of_commands = {**packages, **addresses, **self._secrets}
        self._new_hosts = frozenset(self._hosts.values())
        self._words = whole_words(self._names)
        addressed = r"(?<![\w.-])address\d{1,6}(?=(?::\d{1,5})?/)"
        self._places = re.compile(rf"(?P<name>{self._words.pattern}|{addressed}){_IN_URL}")
        self._of_owner = {
            name.lower(): self._names[name]
            for name in self._own
            if name in self._names and len(name) >= _SHORTEST_SECRET
        }
        self._owner = parts_of_words(self._of_owner)

    def remains(self, words: str) -> bool:
        """Whether a finished text still has a name, an address, a secret or a UUID."""
        named = self._words is not None and self._words.search(words) is not None
        return (
            named
            or self._owner.search(words) is not None
            or any(body in words for body in self._bodies if len(body) >= _SHORTEST_UUID)
        )

    # Replacing a value of a known kind.

    def host(self, name: str) -> str:
        """Return the pseudonym of a machine name."""
        if name in _ADDRESS_OF_NOBODY:
            return name
        self.learn_host(name)
        return self._hosts[name]

    def user(self, name: str) -> str:
        """Return the pseudonym of a user name; root is not private."""
        self.learn_user(name)
        return self._users.get(name, name)

    def address(self, value: str) -> str:
        """Return the pseudonym of a network address, or of the machine if the value is its name."""
        if value in _ADDRESS_OF_NOBODY:
            return value
        if value in self._hosts:
            return self._hosts[value]
        return self._addresses.setdefault(value, f"address{len(self._addresses) + 1}")

    def package(self, name: str) -> str:
        """Return the pseudonym of a distribution name, unless the name is public."""
        if is_public_package(name):
            return name
        plain = name.replace("-", "_")
        self._plain_packages.add(plain)
        self._package_lengths.add(len(plain))
        return self._packages.setdefault(name, f"package{len(self._packages) + 1}")

    def index(self, value: str) -> str:
        """Return an address of a package index, or a channel of conda; those of our tables stay."""
        if value not in self._indexes:
            self._indexes[value] = self._new_index(value)
        return self._indexes[value]

    def _new_index(self, value: str) -> str:
        scheme, sign, rest = value.partition("://")
        parts = rest.split("/") if sign else value.split("/")
        if (parts[0] in index_hosts()) if sign else (parts[0] in CHANNELS):
            return value
        first = parts.pop(0)
        if sign:
            first = f"{scheme}://{self.address(first)}"
        elif first:
            first = self._channels.setdefault(first, f"channel{len(self._channels) + 1}")
        return "/".join((first, *map(self._word_of_url, parts)))

    def _word_of_url(self, word: str) -> str:
        """Return one name in the path of an address."""
        is_public = is_of_index(word) or _OWN.fullmatch(word) is not None
        return word if is_public else self._component(word, windows=False)

    def conda_package(self, value: str) -> str:
        """Return ``name version build channel`` of a package of conda; a channel is an index.

        The name stays: only packages that are named like those of PyTorch and CUDA are facts, and
        what is found rests on their names.
        """
        name, *middle = value.split(" ", 3)
        channel = [self.index(middle.pop())] if len(middle) == len("vbc") else []
        return " ".join((name, *middle, *channel))

    def devices(self, value: str) -> str:
        """Return a list of devices with its UUIDs replaced; indices and words stay."""
        return ",".join(self._device(entry) for entry in value.split(","))

    def path(self, value: str) -> str:
        """Return a path in which only private names are replaced."""
        if value not in self._paths:
            self._paths[value] = self._new_path(value)
        return self._paths[value]

    def paths(self, value: str, separators: str) -> str:
        """Return a list of paths in one text, such as LD_LIBRARY_PATH."""
        parts = re.split(f"([{re.escape(separators)}]+)", value)
        return "".join(part if at % 2 else self.path(part) for at, part in enumerate(parts))

    def _component(self, name: str, *, windows: bool) -> str:
        """Return the pseudonym of one name in a path."""
        if not name or (is_public(name, windows=windows) and not self._names_a_package(name)):
            return name
        name = self._spelling(name) if windows else name
        for known in (self._users, self._hosts, self._channels):
            if name in known:
                return known[name]
        if name not in self._components:
            suffix = SUFFIX.search(name)
            dot = "." if name.startswith(".") else ""
            kind, end = ("file", suffix[0]) if suffix else ("dir", "")
            self._spellings.setdefault(name.lower(), name)
            self._components[name] = f"{dot}{kind}{len(self._components) + 1}{end}"
        return self._components[name]

    def _names_a_package(self, name: str) -> bool:
        """Whether a file name contains that of a private package: ``libacme_ops.so``."""
        plain = name.lower().replace("-", "_")
        return any(
            plain[at : at + length] in self._plain_packages
            for length in self._package_lengths
            for at in range(len(plain) - length + 1)
        )

    def text(self, words: str) -> str:
        """Return free text in which the learned private values, and absolute paths, are replaced.

        A name that is an ordinary word stays: a user called nvidia does not change the messages of
        the driver, and one called install no command.
        """
        if words not in self._texts:
            self._texts[words] = self._new_text(words)
        return self._texts[words]

    def command(self, words: str) -> str:
        """Return a command of ours: its words are no users and no hosts of this machine.

        Files, packages and addresses in it are values.
        """
        if words in self._paths:
            return self._paths[words]
        return self._named(self._found(words), self._of_commands)

    def values(self, words: str) -> str:
        """Return free text without what it shows by its form: it may still have names."""
        if words not in self._values:
            shown = shapes.without_addresses(without_secrets(words), self.address)
            self._values[words] = self._found(shown)
        return self._values[words]

    def _new_text(self, words: str) -> str:
        if words in self._paths:
            return self._paths[words]
        return self.searched(self.values(words))

    def searched(self, words: str) -> str:
        """Return a text with pseudonyms for the names, addresses and secrets that were learned."""
        replaced = self._named(words, self._names)
        return self._owner.sub(lambda found: self._of_owner[found[0].lower()], replaced)

    def _found(self, words: str) -> str:
        return self._finder.sub(self._replacement, words) if self._finder else words

    def _named(self, words: str, among: Mapping[str, str]) -> str:
        if self._places is None:
            return words
        return self._places.sub(lambda found: self._place(found, among), words)

    def _place(self, found: re.Match[str], among: Mapping[str, str]) -> str:
        """Return the pseudonym of a name; behind a host in an address, all is private."""
        name, rest = found["name"], found["rest"] or ""
        new = among.get(name, name)
        in_url = found.string.startswith("://", found.start() - 3)
        is_host = new in self._new_hosts or new.startswith("address")
        if not (is_host and rest and (in_url or "." in name or rest.startswith(":"))):
            return new + self._named(rest, among)
        path, mark, _query = rest.partition("?")
        port, *parts = path.split("/")
        return "/".join((f"{new}{port}", *map(self._word_of_url, parts))) + (mark and f"?{HIDDEN}")

    def _new_finder(self) -> re.Pattern[str]:
        """Return a pattern for UUIDs and paths in text; a path with blanks only if it is known.

        A pattern with every UUID would take seconds for the ten thousand GPUs of a cluster.
        """
        odd_bodies = [body for body in self._bodies if not WHOLE_UUID.fullmatch(body)]
        self._odd_bodies = sorted(odd_bodies, key=len, reverse=True)
        paths = (path for path, new in self._paths.items() if path != new and ends_early(path))
        indexes = (value for value, new in self._indexes.items() if value != new and "://" in value)
        return places(odd_bodies, paths, indexes)

    def _replacement(self, found: re.Match[str]) -> str:
        if found["index"]:
            return self._indexes[found["index"]]
        if found["uuid"]:
            return self._body(found["uuid"])
        if found["file"]:
            return self._file(found["file"])
        if found["cut"]:
            return f"...{self.path(found['cut'])}"
        path = found["path"].rstrip(".")
        return self.path(path) + found["path"][len(path) :]

    def _file(self, words: str) -> str:
        """Return a path within a package, if it names a private file; other words stay."""
        private = words.rpartition("/")[2] in self._components
        return self._new_path(words) if private else words

    def _body(self, seen: str) -> str:
        """Return the pseudonym of a UUID in a text; for an unknown one, by its known start."""
        if seen in self._bodies:
            return self._bodies[seen]
        start = next((body for body in self._odd_bodies if seen.startswith(body)), "")
        return self._bodies[start] + seen[len(start) :] if start else seen

    def _new_body(self) -> str:
        return f"{len(self._bodies) + 1:08d}-0000-0000-0000-000000000000"

    def _device(self, entry: str) -> str:
        """Replace one entry so that it names exactly the devices that it named before."""
        found = _UUID.fullmatch(entry.strip())
        if found is None or not found[2]:
            return entry if is_setting(entry) else HIDDEN
        word = entry.strip()
        prefix, body, instance = found.groups()
        if body in self._bodies:
            return entry.replace(word, f"{prefix}{self._bodies[body]}{instance}")
        shortest = max(len(word), len(prefix) + _SHORTEST_UUID)
        first = bisect.bisect_left(self._full_uuids, word)
        last = bisect.bisect_right(self._full_uuids, word, key=lambda uuid: uuid[: len(word)])
        named = self._full_uuids[first:last]
        if len(named) > 1:
            new = _common_start([self._whole(uuid) for uuid in named])
        elif named:
            new = self._whole(named[0])[:shortest]
        else:
            self._bodies[body] = self._new_body()
            new = f"{prefix}{self._bodies[body]}"[:shortest]
        return entry.replace(word, new)

    def _whole(self, uuid: str) -> str:
        found = _UUID.fullmatch(uuid)
        if found is None:
            return self._bodies[uuid]
        return f"{found[1]}{self._bodies[found[2]]}{found[3]}"

    def _new_path(self, value: str) -> str:
        windows = _WINDOWS.match(value) is not None
        parts = (_SEPARATORS if windows else _SLASHES).split(value)
        names = parts[::2]
        if _is_of_system(names):
            return value
        for at, name in enumerate(names):
            above = names[at - 1].lower() if at else ""
            if at > 1 and names[at - 2] in _OF_PACKAGES and is_public_package(above):
                break  # what everybody can download
            if above in HOMES and name and name not in NO_USERS:
                parts[2 * at] = self.user(self._spelling(name) if windows else name)
            else:
                parts[2 * at] = self._component(name, windows=windows)
        return "".join(parts)

    def _spelling(self, name: str) -> str:
        """Return the spelling seen first: file names on Windows are not case-sensitive."""
        lower = name.lower()
        for known in (self._lower_users, self._lower_hosts):
            if lower in known:
                return known[lower]
        return self._spellings.setdefault(lower, name)


def _is_of_system(names: list[str]) -> bool:
    """Whether an absolute path is in a folder of the system, in which everything is public."""
    if ".." in names or len(names) < 2:  # noqa: PLR2004  # "/x" has two names, the first one empty
        return False
    if re.fullmatch("[A-Za-z]:", names[0]):
        return names[1].lower() == "windows"
    roots = ("/".join(names[1:end]) for end in range(2, _DEEPEST_ROOT + 2))
    return not names[0] and any(root in SYSTEM_ROOTS for root in roots)


def _identifies(name: str) -> bool:
    """Whether a name may be searched in sentences: no ordinary word, nothing well known."""
    ordinary = name.lower() in ORDINARY or is_public(name)
    return len(name) >= _SHORTEST_WORD and not ordinary


def _common_start(words: list[str]) -> str:
    first, last = min(words), max(words)
    same = next((at for at, char in enumerate(first) if char != last[at : at + 1]), len(first))
    return first[:same]
