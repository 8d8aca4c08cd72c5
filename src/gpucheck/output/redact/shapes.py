"""Names and addresses that a text of others shows by their form (secrets: ``facts/secrets.py``).

A ticket tells no field from another, so what is private in it is known by what stands around it.
Every repeat has a limit, and no two that match the same stand side by side.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal

from gpucheck.facts.secrets import Shapes, shape
from gpucheck.facts.system import HIDDEN
from gpucheck.output.redact import patterns
from gpucheck.output.redact.public_names import is_program, is_public_image

Kind = Literal[
    "user",
    "host",
    "folder",
    "process",
    "image",
    "cluster",
    "partition",
    "account",
    "job",
    "address",
    "channel",
]

_MAIL = re.compile(
    r"(?<![\w.+/@-])(?!port@host\b)(?P<user>[A-Za-z_][\w.+-]{0,63})@(?P<host>[A-Za-z0-9][\w.-]{0,252})"
    r"(?![\w@:]{0,300}@)"
    r"(?P<repository>(?::[\w.-]{1,100}(?:/[\w.+-]{1,100}){1,8}|:[\w.-]{1,100}\.git)?)"
)
"""``user@host``, and the repository or the file that ``git`` and ``scp`` name behind it."""
_NO_HOSTS_OF_MAIL = re.compile(
    r"sha(?:256|512)\b.*|[A-Z][A-Z0-9]{1,20}_[\w.]{1,40}|(?![0-9a-f]{12}\Z)v?\d[\w.]{0,40}"
)
"""Digests of images, versions of symbols (``memcpy@GLIBC_2.14``) and of packages. Twelve digits of
a hexadecimal number are the name of a container."""
_NO_NAME = (
    r"[\d.:x-]{1,253}|(?:eth|en[opsx]|eno|ib|bond|br|docker|lo|wl|veth|mlx|rank|gpu|cuda|fe|tid"
    r"|pid)[\da-f_]{0,8}(?:[a-z]\d{1,4}){0,3}|.*\.(?:py|pyx|cpp|cc|cu|cuh|c|h|hpp|rs|go|js|so|sh|ya?ml"
    r"|json|toml|txt|log|md|html)"
)
"""Numbers, interfaces and adapters, ranks, files with a line."""
_NO_HOST = re.compile(rf"(?i){_NO_NAME}|\w+_\w+|[a-z_]+|[a-z]\d{{3,}}")
"""Also words, and identifiers of a program: most forms of a host are those of other values, too."""
_NO_SURE_HOST = re.compile(rf"(?i){_NO_NAME}")
_NAME = r"[A-Za-z0-9][\w.-]{0,252}"
_NUMBERED = r"(?=[\w.-]{0,99}[\d-])"
"""Words that are no names have no digit and no hyphen where these names stand."""
_NAMES_OF_LINE = (
    r"(?=(?P<list>[ \t]{1,16}[A-Za-z][\w.-]{0,60}(?:[ \t]{1,8}[A-Za-z][\w.-]{0,60}){0,5})\s{0,8}$)"
)
"""Behind an address at the start of a line: ``/etc/hosts``."""
_ENDS_OF_NAMES = (
    "com|org|net|edu|gov|mil|int|info|cloud|dev|io|ai|co|eu|uk|de|nl|fr|be|ch|cz|dk|es|fi|se|cn|jp|kr|"
    "tw|hk|sg|au|nz|ca|us|br|ru|il|za"
)
"""Top-level domains that are no ends of files."""
_SYSTEMS = (
    "Ubuntu|Debian|CentOS|Rocky|Alma|Red Hat|RHEL|Fedora|(?:open)?SUSE|Oracle|Amazon|Arch|Alpine|"
    "Linux|NVIDIA|DGX|GNU|Kali|Raspberry|Windows|Microsoft|Azure|Google|Colab|Kaggle|Python|IPython|"
    "Jupyter|PyTorch|Lambda|RunPod|Docker|NixOS|JetPack|Jetson"
)
"""What also welcomes people."""
_OF_GREETING = (
    r"(?:(?i:the|of|at|for|hpc|cluster|computing|supercomputer|university|institute|center|centre|"
    r"national|research|system|login|node|server|gpu|facility|department|laboratory)(?![\w.-])"
    r"|(?-i:[A-Z0-9])[\w.-]{1,62}|[a-z][\w.-]{0,60}\d[\w.-]{0,20})"
)
"""A word of the name in a greeting."""
_SURE_HOSTS = Shapes(
    shape(  # NCCL
        "nccl|[", rf"(?<![\w./-])(?P<host>{_NAME}):\d{{1,10}}:\d{{1,10}} (?:\[\d|NCCL)"
    ),
    shape(  # syslog, journalctl, dmesg -T of several
        "",
        r"(?<!\S)(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.+Z-]{8,32}) "
        rf"(?P<host>{_NAME}) [\w./@-]{{1,60}}(?:\[\d{{1,10}}\])?:",
    ),
    shape(
        "error:",
        r"(?<![\w./-])(?:srun|slurmstepd|slurmd)(?:\[[^\]\n]{1,60}\])?: error: "
        r"(?P<list>[A-Za-z0-9][\w.,\[\]-]{0,1000}):",
    ),
    shape(" on ", rf"\b(?:JOB|STEP) \d[\d.]{{0,20}} ON (?P<host>{_NAME}) "),  # Slurm
    shape("linux ", rf"\bLinux (?P<host>{_NAME}) \d+\.\d+\.[\d.]+[-+]"),  # uname -a
    shape("machine ", rf"\bmachine (?P<host>{_NAME}) login\b"),  # netrc
    shape("last ", rf"\bLast (?:failed )?login: [^\n]{{8,60}}? from (?P<host>{_NAME})"),
    shape(  # the greeting of a login; that of a distribution names nobody
        "welcome to ",
        rf"(?m)^[ \t*#=|+-]{{0,40}}Welcome to (?:the )?(?!(?:{_SYSTEMS})\b)"
        rf"(?P<list>{_OF_GREETING}(?: {_OF_GREETING}){{0,5}})",
    ),
    shape(  # a file system in the output of mount or in fstab
        ":/",
        rf"(?<![\w./:-])(?P<host>{_NAME}):/\S{{0,200}} (?:on )?/\S{{1,200}} (?:type )?"
        r"(?:nfs4?|lustre|ceph|glusterfs|beegfs)\b",
    ),
    shape("cifs", rf"(?<![\w:])//(?P<host>{_NAME})/[^\n]{{1,400}}?\bcifs\b"),
    shape(
        "host name:|logon server:",
        rf"\b(?:Host Name|Logon Server): {{1,40}}\\{{0,2}}(?P<host>{_NAME})",
    ),
    shape("server at ", rf"\bserver at \"(?P<host>{_NAME})\" \("),  # PostgreSQL
    shape("pod", rf"(?i)\bpod=\\?\"(?P<space>[\w.-]{{1,100}})/(?P<host>{_NAME})"),  # kubelet
    shape(
        "uid", r"(?i)\bpod_?uid[\"':= \\]{1,4}(?P<host>[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})"
    ),
    shape("no_proxy", r"(?i)\bno_proxy=[\"']?(?P<list>[\w.,:*-]{1,1000})"),
    shape("pvc-", r"(?<![\w-])(?P<host>pvc-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})"),
    shape(  # the server of a licence
        "@",
        rf"(?<![\w.@/-])\d{{4,5}}@(?P<host>[A-Za-z][\w.-]{{0,252}})"
        rf"|(?i:licen[sc]e_(?:file|server)=@(?P<other>{_NAME}))",
    ),
)
"""Of these forms even a mere word is the name of a host."""
_HOSTS = Shapes(
    shape(  # host: x, hostname=x, MASTER_ADDR=x, SLURM_JOB_NODELIST=n-[1-3]
        "host|node|server|master_addr|computer|rdzv",
        r"(?i)(?<![\w.])(?:(?-i:[A-Z0-9]{2,20}_|SLURMD_|Batch)){0,4}(?:host(?:[_ ]?name|list)?"
        r"|node(?:[_ ]?name|list)?|server|master_addr|computer[_ ]?name|rdzv[_-]endpoint)"
        r"[\"']?\s{0,8}[:=]\s{0,3}[\"'(\[]?(?P<list>[A-Za-z0-9][\w.,\[\]-]{0,1000})",
    ),
    shape(  # host x-1, tcp://x:1, to x:29500, [x]:29500, x<45678>
        "host|node|peer|server|://|to |at |]:|<|: connection",
        r"(?i)(?:\b(?:host|hostname|node|peer|server) [\"'(\[]?(?=\S{0,99}[\d.-])"
        rf"(?P<host>{_NAME})"
        rf"|\bat {_NUMBERED}(?P<met>{_NAME}):\d{{4,5}}\b"
        rf"|(?<![\w./-]){_NUMBERED}(?P<closed>{_NAME}): connection (?:closed|refused|reset|timed)"
        rf"|\b[a-z][a-z0-9+]{{1,9}}://(?:\(hidden\)@)?\[?(?P<in_url>{_NAME})"
        rf"|\bto \[?(?P<reached>{_NAME})\]?:\d{{2,5}}\b|\[(?P<bracketed>{_NAME})\]:\d{{2,5}}\b"
        rf"|(?<![\w.<:%-])(?P<angled>{_NAME})<\d{{1,5}}>)",
    ),
    shape(  # only an own network has such names
        ".",
        r"(?i)(?<![\w./-])(?P<host>[a-z0-9][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){0,6}"
        r"\.(?:internal|intranet|corp|lan|localdomain|local|hpc|cluster|intra))(?![\w.(-])",
    ),
    shape(  # with a hyphen it is no attribute of a program: x-1.lab.uni.de
        ".",
        r"(?i)(?<![\w./@-])(?P<host>(?=[a-z0-9.]{1,200}-)(?:[a-z0-9][a-z0-9-]{0,62}\.){2,6}"
        rf"(?:{_ENDS_OF_NAMES}))(?![\w.(-])",
    ),
    shape(  # mpirun -H x1:8,x2:8; srun --nodelist=x[1-3]
        "-h|--host|--nodelist|--exclude",
        r"\s(?:-H|--hosts?|--nodelist|--exclude)[ =](?=[\w.,:\[\]-]{0,999}\d)"
        r"(?P<list>[A-Za-z][\w.,:\[\]-]{0,999})",
    ),
    shape(  # [x-1:4711] of Open MPI; x-1/10.0.0.1:80; connect to (x-1, 29500)
        "[|/|(",
        rf"\[{_NUMBERED}(?P<host>{_NAME}):\d{{3,10}}\](?= )"
        rf"|(?<![\w./-]){_NUMBERED}(?P<slash>{_NAME})/\d{{1,3}}(?:\.\d{{1,3}}){{3}}:\d{{2,5}}\b"
        r"|(?i:\b(?:address(?:es)?|connect\w{0,4}|listen\w{0,4}|bind\w{0,4}|reach\w{0,4}|store))"
        rf" (?:of|to|from|at|on|with) \({_NUMBERED}(?P<pair>{_NAME}), \d{{2,5}}\)",
    ),
    shape(  # pod/x-1, namespace x-y, kubectl logs x
        "pod|namespace|deployment|statefulset|kubectl",
        r"\b(?:pods?|namespaces?|deployments?|statefulsets?)(?:\.apps)?(?:/|[:=]\s?)[\"']?"
        rf"{_NUMBERED}(?P<host>{_NAME})"
        rf"|\bnamespace [\"']?(?=[\w.]{{1,99}}-)(?P<space>{_NAME})"
        rf"|\bpods? [\"']?(?=[\w.-]{{1,99}}\d)(?P<pod>{_NAME})"
        r"|\bkubectl\b[^\n|;&]{0,100}? (?:logs|exec|attach)[ =](?:-it )?"
        rf"(?:\w{{1,40}}/)?{_NUMBERED}(?P<named>{_NAME})(?!/)",
    ),
    shape(
        "kubectl",
        rf"\bkubectl\b[^\n|;&]{{0,200}}? (?:-n|--namespace)[ =]{_NUMBERED}(?P<host>{_NAME})",
    ),
    shape(  # the pod of a deployment: its name ends with letters that Kubernetes chooses
        "-",
        r"(?<![\w.-])(?P<host>[a-z0-9][a-z0-9-]{0,200}-[bcdf-hj-np-tv-z2456789]{8,10}"
        r"-[bcdf-hj-np-tv-z2456789]{5})(?![\w-])",
    ),
    shape("ip-", r"(?<![\w.-])(?P<host>ip-\d{1,3}(?:-\d{1,3}){3})(?![\w-])"),  # of AWS
    shape("", rf"(?m)^\s{{0,4}}\d{{1,3}}(?:\.\d{{1,3}}){{3}}{_NAMES_OF_LINE}"),
)
_NO_USERS = (
    "is|has|does|can|cannot|may|must|should|did|was|will|would|who|that|which|needs|account|code|"
    "program|process|space|mode|group|name|id|to|in|or|and|of|for|with|data|input|level|session"
)
"""What also follows the word *user* in a sentence."""
_USER = r"[a-z_][a-z0-9_.-]{0,31}"  # useradd(8): at most 32 characters, no capitals
_GROUP = r"[a-z_][a-z0-9_.^\\@+-]{0,63}"
_DOMAIN = r"(?:(?P<domain>[\w.-]{1,64})\\)?"
"""The domain of Windows to which a user or a group belongs."""
_GROUPS_OF_SYSTEMS = (
    "adm|audio|bin|cdrom|daemon|dialout|dip|disk|docker|floppy|games|input|kvm|libvirt|lp|lpadmin|lxd|"
    "mail|netdev|nogroup|ollama|plugdev|render|root|sambashare|scanner|staff|sudo|sys|"
    "systemd-journal|tape|tty|users|video|vboxusers|wheel|wireshark"
)
_NO_GROUP = re.compile(rf"(?i){_GROUPS_OF_SYSTEMS}|groups|domain (?:users|admins)")
_USERS = Shapes(
    shape(
        "user|logname|login|owner",
        r"(?i)(?<![\w.])(?<!last )(?<!failed )(?:user(?:[_ ]?name)?|logname|login|owner)"
        r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<user>[A-Za-z_][\w.-]{0,31})",
    ),
    shape(
        "user|by ",
        r"(?i)(?:\buser [\"'](?P<quoted>[\w.-]{1,32})[\"']"
        r"|\b(?:for|as|by|to) user (?P<named>[\w.-]{1,32})"
        r"|\b(?:owned|submitted|started) by (?P<by>[a-z_][\w.-]{0,31})"
        rf"|\buser (?!(?:{_NO_USERS})\b)(?P<user>[a-z_][\w.-]{{0,31}})"
        r" (?:is|has|does|can|cannot|may|lacks)\b)",
    ),
    shape("id=", rf"\b[ug]id=\d{{1,10}}\({_DOMAIN}(?P<user>[\w. -]{{1,32}})\)"),
    shape("uid ", r"\bUID \d{1,10} \((?P<user>[\w.-]{1,32})\)"),
    shape("owner ", r"\(owner (?P<user>[\w.-]{1,32})\)"),
    # sshd, su and systemd
    shape(
        "failure for|failed|accepted|of user",
        r"\b(?:[Aa]uthentication failure for|(?:Failed|Accepted) [\w/-]{1,30} for(?: invalid user)?"
        r"|Session \w{1,20} of user) (?P<user>[a-z_][\w.-]{0,31})",
    ),
    shape(
        "groups=", rf"(?<=[=,])\d{{1,10}}\({_DOMAIN}(?P<group>[a-z_][a-z0-9_.^@+ -]{{0,63}})\)"
    ),  # id
    # groups x: its first group is that of the user
    shape(
        " : ", rf"(?m)^(?P<user>{_USER}) : (?=(?P=user)\b)(?P<list>{_GROUP}(?: {_GROUP}){{0,60}})$"
    ),
    shape("groups", rf"(?m)[$#>%] ?groups\n(?P<list>{_USER}(?: {_GROUP}){{0,60}})$"),
    # groups without the command: three that are on every system show what it is
    shape(
        _GROUPS_OF_SYSTEMS,
        rf"(?m)^(?=(?:\S{{1,64}} ){{0,40}}?(?:(?:{_GROUPS_OF_SYSTEMS})(?: |$)"
        rf"(?:\S{{1,64}} ){{0,20}}?){{3}})(?P<list>{_USER}(?: {_GROUP}){{1,60}})$",
    ),
    shape("sudo", r"\bsudo(?:\[\d{1,10}\])?:\s{1,8}(?P<user>[\w.-]{1,32}) : "),
    shape("sudoers", r"(?<![\w.-])(?P<user>[\w.-]{1,32}) is not in the sudoers file"),
    shape(
        "-",
        r"(?m)(?<!\S)[-dlcb][rwxsStT-]{9}[.+@]?\s{1,4}\d{1,6}\s(?P<user>[\w.-]{1,32})\s{1,16}"
        r"(?P<group>[\w.^\\@+-]{1,64})\s{1,16}\d",
    ),
    shape(
        "/home|users",
        r"(?i)(?:^|[\s\"'=(])(?:/home|/users|[a-z]:\\users)[/\\](?P<user>[\w.-]{1,32})",
    ),
    # --user x of a program; that of pip has no name. ssh -l x; netrc
    shape(
        "--user",
        r"(?m)^(?!.{0,400}\binstall\b).{0,400}?\s--user(?:name)?[ =]"
        r"(?P<user>[A-Za-z_][\w.-]{0,31})",
    ),
    shape("ssh", r"\bssh\b[^\n|;&]{0,100}? -l ?(?P<user>[\w.-]{1,32})"),
    shape("login ", r"\blogin (?P<user>[\w.@-]{1,64}) password\b"),
)
_FOLDERS = Shapes(
    shape(  # environments of conda
        "env",
        r"(?i)\b(?:conda_default_env|(?:active|conda) environment)\s{0,3}[:=]\s{0,3}[\"']?"
        r"(?P<folder>[\w.-]{2,64})",
    ),
)
_CHANNELS = Shapes(
    shape("channel ", r"\bfor channel (?P<channel>[\w.-]{1,64}) <"),
    shape("conda.anaconda.org/", r"\bconda\.anaconda\.org/(?P<channel>[\w.-]{1,64})"),
)
_COMM = r"[^\s,()\[\]<>'\"=]{2,64}"
_PROCESSES = Shapes(
    shape("xid", rf"\bXid\b[^\n]{{0,120}}?\bname=(?P<process>{_COMM})"),
    shape("process", rf"\b[Kk]illed process \d{{1,10}} \((?P<process>{_COMM})\)"),
    shape("oom", rf"\boom-kill:[^\n]{{0,300}}?\btask=(?P<process>{_COMM})"),
    shape("comm: ", rf"\bPID: \d{{1,10}} Comm: (?P<process>{_COMM})"),
    shape("segfault", rf"(?<![^\s\]])(?P<process>{_COMM})\[\d{{1,10}}\]: segfault at "),
)
"""What the kernel calls a process: the first 15 characters of a name that somebody chose."""
_REPOSITORY = r"[a-z0-9][a-z0-9._-]{0,99}(?:/[a-z0-9][a-z0-9._-]{0,99}){1,4}"
_TAG = r"(?::[\w.-]{1,128})?"
_OF_HUB = r"(?:(?:docker|index\.docker)\.io/)?"
_IMAGES = Shapes(
    shape(  # on a registry of everybody
        ".io/|.dev/|.aws/|.com/",
        r"(?<![\w./-])(?:docker\.io|index\.docker\.io|ghcr\.io|quay\.io|nvcr\.io|"
        r"(?:[a-z]{2,8}\.)?gcr\.io|[a-z0-9-]{2,30}-docker\.pkg\.dev|public\.ecr\.aws|"
        rf"registry\.gitlab\.com)/(?P<image>{_REPOSITORY}{_TAG})",
    ),
    shape("/v2/", rf"/v2/(?P<image>{_REPOSITORY})/(?:manifests|blobs|tags)/"),
    shape(
        "from ", rf"(?m)^\s{{0,8}}FROM (?:--platform=\S{{1,40}} )?(?P<image>{_REPOSITORY}{_TAG})"
    ),
    shape("image", rf"(?i:\bimage)(?:: [\"']?| [\"'])(?P<image>{_REPOSITORY}:[\w.-]{{1,128}})"),
    shape(
        "docker|podman|nerdctl|apptainer|singularity",
        r"\b(?:docker|podman|nerdctl) (?:image )?(?:pull|push|run)\b"
        r"(?:[ \t]{1,8}[^\s|;&]{1,200}){0,30}?"
        rf"[ \t]{{1,8}}(?<![\w.-])(?P<image>{_REPOSITORY}{_TAG})(?![\w./:-])"
        rf"|\bdocker://{_OF_HUB}(?P<pulled>{_REPOSITORY}{_TAG})",
    ),
)
"""The repositories of images, with what their owner calls a version."""
# Four numbers are also a version: what stands before and behind them decides (_OF_NETWORK,
# _OF_VERSIONS), and no letter, sign or further number may touch them.
_V4 = re.compile(
    r"(?:(?<![\w.+-])|(?<=\s--))(?P<lead>(?:[A-Za-z][\w)-]{0,40}[ =:~<>!]{1,16})?)"
    r"(?P<address>\d{1,3}(?:\.\d{1,3}){3})(?![\w-]|\.\d)"
    r"(?P<port>(?:<\d|\]?:\d{2,5}\b|/\d{1,2}\b|@(?:o2ib|tcp)|\), port )?)"
)
_V4_OF_LINE = re.compile(
    rf"(?m)^\s{{0,4}}(?P<address>\d{{1,3}}(?:\.\d{{1,3}}){{3}}){_NAMES_OF_LINE}"
)
_OF_NETWORK = re.compile(
    r"(?i)(?:\w*addr\w*|address|peer|host\w*|ip|inet|from|to|at|on|via|connect\w*|remote|server|"
    r"socket|using|brd|broadcast|netmask|bind|listen\w*|gateway|node|endpoint|master\w*)"
    r"[ =:~<>!]{1,16}"
)
_OF_VERSIONS = re.compile(r"(?i)(?:.*(?:version|ver|cu\d\d|cudnn|nvidia|lib|curand|cublas|cufft)"
                          r"[\w)-]{0,40}[ =:~<>!]{1,16}|.*[=~<>!]=)")  # fmt: skip
# Only ranges that are given out (2000::/3, link-local, unique local, NAT64) or mapped addresses:
# times and MAC addresses have colons, too.
_V6 = re.compile(
    r"(?i)(?<![\w:.])(?P<address>(?:[23][0-9a-f]{3}|fe[89ab][0-9a-f]|f[cd][0-9a-f]{2}|64)"
    r"(?::[0-9a-f]{0,4}){2,7}|::ffff:[\d.]{7,15})(?:%\w{1,15})?(?![\w:])"
)
# One separator throughout, which a UUID or a time does not have six times.
_INSTANCE = re.compile(
    r"(?i)(?P<device>\bVEN_[0-9A-F]{4}&DEV_[0-9A-F]{4}[\w&]{0,60}[\\#]{1,4})(?P<unit>[\w&]{4,60})"
)
"""The key of one device in the Windows registry: of new GPUs it is their serial number."""
_MAC = re.compile(
    r"(?i)(?<![\w:-])(?P<address>[0-9a-f]{2}(?P<between>[:-])(?:[0-9a-f]{2}(?P=between)){4}"
    r"[0-9a-f]{2})(?![\w:-])"
)
_DEVICE = re.compile(r"(?:MIG-GPU|MIG|GPU)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BYTE, _LOOPBACK = 255, 127  # of an IPv4 address
_FIRST_OF_VERSIONS = 13
"""Four numbers are a version of a CUDA library (cuRAND 10.3.5.147) up to this first one, unless
something around them says that they are an address."""


def names(text: str) -> Iterator[tuple[Kind, str]]:
    """Yield the names of users, hosts, folders and others that stand where such names stand.

    A secret may look like a name: the text must be one without.
    """
    for shapes, others in ((_SURE_HOSTS, _NO_SURE_HOST), (_HOSTS, _NO_HOST)):
        yield from (("host", host) for host in shapes.values(text) if not others.fullmatch(host))
    yield from (("user", user) for user in _USERS.values(text) if not _NO_GROUP.fullmatch(user))
    yield from (
        ("process", program) for program in _PROCESSES.values(text) if not is_program(program)
    )
    yield from (("image", image) for image in _IMAGES.values(text) if not is_public_image(image))
    yield from (("folder", folder) for folder in _FOLDERS.values(text))
    yield from (("channel", channel) for channel in _CHANNELS.values(text))
    yield from patterns.names(text)
    for found in _MAIL.finditer(text):
        if _is_mail(found):
            yield "user", found["user"]
            yield "host", found["host"].rstrip(".-")


def without_addresses(text: str, pseudonym: Callable[[str], str]) -> str:
    """Return the text without mail addresses, and with pseudonyms for addresses of a network."""
    if "@" in text:
        text = _MAIL.sub(_without_mail, text)
    if ":" in text or "-" in text:
        text = _V6.sub(lambda found: _replaced(found, pseudonym), text)
        text = _MAC.sub(lambda found: _replaced(found, pseudonym), text)
    if "VEN_" in text.upper():
        text = _INSTANCE.sub(lambda found: f"{found['device']}{pseudonym(found['unit'])}", text)
    if "." in text:
        text = _V4_OF_LINE.sub(lambda found: _replaced(found, pseudonym), text)
        text = _V4.sub(lambda found: _replaced_v4(found, pseudonym), text)
    return text


def devices(text: str) -> Iterator[str]:
    """Yield the UUIDs of GPUs and MIG devices, which a text marks by what they begin with."""
    return (found[0] for found in _DEVICE.finditer(text))


def _is_mail(found: re.Match[str]) -> bool:
    return _NO_HOSTS_OF_MAIL.fullmatch(found["host"]) is None


def _without_mail(found: re.Match[str]) -> str:
    """Hide ``user@host``; the full stop of its sentence stays."""
    ending = "" if found["repository"] else found["host"][len(found["host"].rstrip(".-")) :]
    return f"{HIDDEN}{ending}" if _is_mail(found) else found[0]


def _replaced(found: re.Match[str], pseudonym: Callable[[str], str]) -> str:
    return found[0].replace(found["address"], pseudonym(found["address"]), 1)


def _replaced_v4(found: re.Match[str], pseudonym: Callable[[str], str]) -> str:
    numbers = [int(part) for part in found["address"].split(".")]
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
