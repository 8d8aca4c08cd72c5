"""The keys of ``gpucheck compat``: their meaning, the facts they fill, how values are read.

An absent key says nothing. ``none`` on the command line and ``null`` in JSON mean that something
was looked for and does not exist.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from gpucheck.facts.numbers import whole_number
from gpucheck.language import any_of, in_series, in_turn, say
from gpucheck.language.visible import made_visible
from gpucheck.tables.meant_products import did_you_mean, same_name
from gpucheck.tables.versions import capability_numbers, minor, parse

# Chosen: a value is a version, a name or a path. Names are compared with every product: 1,000
# unknown ones take 1.4 s (docs/evidence.md, Fuzzing), which bounds their number.
LONGEST_VALUE = 200
MOST_VALUES = 1024
_LARGEST_NUMBER = 10**18  # chosen: above every number of bytes; floats are exact to one up to 9e15
NONE_WORDS = ("none", "null")
# Forms of values. What does not fit is refused with its name, so that a typing error is not judged
# as an unknown machine.
_TORCH = re.compile(r"[0-9]{1,4}\.[0-9A-Za-z][0-9A-Za-z.+_-]{0,60}")
_RELEASE = re.compile(r"[0-9]{1,4}(?:\.[0-9A-Za-z]{1,12}){0,5}(?:\+[0-9A-Za-z.]{1,40})?")
_PYTHON = re.compile(r"([0-9]\.[0-9]{1,2}(?:\.[0-9]{1,3})?)(t?)")
_WORD = re.compile(r"[0-9A-Za-z][0-9A-Za-z ._+/()-]{0,99}")
_CODE = re.compile(r"(?:sm|compute)_[0-9]{2,3}[af]?")
_PACKAGE = re.compile(r"([0-9A-Za-z][0-9A-Za-z._-]{0,80})(?:==| +)([0-9][0-9A-Za-z.+_-]{0,60})")
_COMPAT_PACKAGE = re.compile(r"cuda-compat-([0-9]{1,2})-([0-9]{1,2})(?:[=_ ].*)?")
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")

Given = dict[str, list[str]]
"""Each given key with its parsed values; [] means "looked for and not there"."""


class GivenError(ValueError):
    """A key or a value that cannot be read; the message is one sentence for the user."""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key.

    ``fields`` are the facts that it fills, ``read`` turns the text of a value into its plain form
    or raises ValueError, ``form`` says in words what is expected. Which findings look at it
    stands in their headers.
    """

    name: str
    fields: tuple[str, ...]
    form: str
    read: Callable[[str], str]
    many: bool = False
    decimal: bool = False
    """Whether a JSON number with a fraction is accepted: it can never end in a zero."""
    words: tuple[str, ...] = ()
    """The values of a key that has only a few."""


def _version(text: str) -> str:
    if parse(text) is None:
        raise ValueError
    return text


def _release(text: str) -> str:
    return _matched(_RELEASE, text)


def _matched(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError
    return text


def _torch(text: str) -> str:
    return _matched(_TORCH, text.removeprefix("torch==").removeprefix("v"))


def _python(text: str) -> str:
    return _matched(_PYTHON, text.removeprefix("Python "))


def _cuda(text: str) -> str:
    found = minor(text.lower())
    if found is None:
        raise ValueError
    return found


def _cuda_compat(text: str) -> str:
    """Read a CUDA version, or the name of a package: ``cuda-compat-13-0``."""
    package = _COMPAT_PACKAGE.fullmatch(text.lower())
    return _cuda(text) if package is None else f"{package[1]}.{package[2]}"


def _capability(text: str) -> str:
    plain = text.lower().removeprefix("sm_")
    if plain != text.lower() and plain[1:].isdecimal():
        plain = f"{plain[:-1]}.{plain[-1]}"
    if capability_numbers(plain) is None:
        raise ValueError
    return plain


def _count(text: str) -> str:
    number = whole_number(text)
    if number is None or number > MOST_VALUES:
        raise ValueError
    return str(number)


def _some(text: str) -> str:
    """Read a count, or a word that means some or none."""
    lower = text.lower()
    if lower in _YES or lower in _NO:
        return "1" if lower in _YES else "0"
    return _count(text)


def _flag(text: str) -> str:
    lower = text.lower()
    if lower not in _YES + _NO:
        raise ValueError
    return "true" if lower in _YES else "false"


def _word(text: str) -> str:
    return _matched(_WORD, text)


def _code(text: str) -> str:
    """Read GPU code: ``sm_80``, ``compute_90``, or a compute capability, which means its cubin."""
    lower = text.lower()
    numbers = capability_numbers(lower)
    return _matched(_CODE, lower if numbers is None else f"sm_{numbers[0]}{numbers[1]}")


def _package(text: str) -> str:
    found = _PACKAGE.fullmatch(text)
    if found is None:
        raise ValueError
    return f"{found[1]}=={found[2]}"


def _one_of(words: tuple[str, ...], also: Mapping[str, str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        found = same_name(also.get(text.lower(), text), words)
        if found is None:
            raise ValueError
        return found

    return read


def _choice(
    name: str,
    words: tuple[str, ...],
    fields: tuple[str, ...],
    also: Mapping[str, str] = MappingProxyType({}),
) -> Key:
    """Return a key with a few values; ``also`` are other names for some, in lower case."""
    form = say("one of {words}", words=in_series(words))
    return Key(name=name, fields=fields, form=form, read=_one_of(words, also), words=words)


def _version_such_as(*examples: str) -> str:
    return say("a version such as {example}", example=any_of(examples))


_PACKAGES = ("packages.distributions",)
_GPUS = ("nvml.gpus", "pci.gpus")

# fmt: off
_KEYS = (
    _choice("action", ("run", "import", "install", "build-extension"), ("request.purpose",)),
    _choice("os", ("linux", "windows", "wsl2", "macos"), ("system.os", "system.wsl"),
            {"wsl": "wsl2", "wsl 2": "wsl2", "darwin": "macos", "mac": "macos"}),
    Key(name="arch", fields=("system.machine",), form=say("x86_64, aarch64 or another machine"),
        read=_word),
    Key(name="glibc", fields=("system.glibc", "system.libc"), form=_version_such_as("2.28"),
        read=_version),
    Key(name="driver", fields=("nvml.driver_release", "nvml.init_code", "nvml.gpus"),
        form=say("a driver release such as {example}", example="535.104.05"), read=_version),
    Key(name="driver_cuda", fields=("nvml.cuda",), form=_version_such_as("12.2"), read=_cuda,
        decimal=True),
    _choice("kernel_module", ("open", "proprietary"), ("driver.module_flavour",)),
    Key(name="gpu", fields=("nvml.gpus.N.device_name", "pci.gpus.N.product"),
        form=say("a product name such as {example}", example="GeForce RTX 4090"),
        read=_word, many=True),
    Key(name="compute_capability",
        fields=("nvml.gpus.N.compute_capability", "pci.gpus.N.compute_capability"),
        form=_version_such_as("8.9"), read=_capability, many=True, decimal=True),
    Key(name="gpu_count", fields=_GPUS, form=say("a number"), read=_count),
    Key(name="board", fields=("system.jetson",),
        form=say("a board such as {example}", example="Jetson AGX Orin"),
        read=_word),
    Key(name="jetpack", fields=("system.l4t", "system.jetson"), form=_version_such_as("6.1"),
        read=_word),
    Key(name="torch", fields=("torch.installed", "torch.version", "torch.built_for", "torch.cuda"),
        form=_version_such_as("2.9.1", "2.9.1+cu128"), read=_torch),
    _choice("torch_source", ("pypi", "pytorch-index", "conda-forge", "conda", "pytorch-channel",
                             "ngc", "jetson", "source"), ("torch.installer",)),
    Key(name="python", fields=("interpreter.version", "interpreter.free_threaded"),
        form=_version_such_as("3.12", "3.13t"), read=_python),
    Key(name="numpy", fields=_PACKAGES, form=_version_such_as("2.1.0"), read=_release),
    Key(name="torchvision", fields=_PACKAGES, form=_version_such_as("0.21.0"), read=_release),
    Key(name="torchaudio", fields=_PACKAGES, form=_version_such_as("2.6.0"), read=_release),
    Key(name="triton", fields=("packages.distributions", "nvidia_wheels.pins"),
        form=_version_such_as("3.5.1"), read=_release),
    Key(name="cudnn_compiled", fields=("torch.cudnn_compiled", "torch.cudnn"),
        form=_version_such_as("9.10.2"), read=_version),
    Key(name="cudnn_runtime", fields=("loading.libraries", "loading.missing"),
        form=_version_such_as("9.10.2"), read=_version),
    Key(name="cudnn_soname_needed", fields=("loading.missing",),
        form=say("a name such as {example}", example="libcudnn.so.9"), read=_word),
    Key(name="cudnn_sonames_found", fields=("loading.missing", "loading.libraries"),
        form=say("names such as {example}", example="libcudnn.so.9"), read=_word, many=True),
    Key(name="nvidia_packages", fields=("packages.distributions", "nvidia_wheels.pins"),
        form=say("name==version, such as {example}", example="nvidia-cudnn-cu12==9.1.0.70"),
        read=_package, many=True),
    Key(name="packages", fields=_PACKAGES,
        form=say("name==version, such as {example}", example="vllm==0.33.0"),
        read=_package, many=True),
    Key(name="cuda", fields=("torch.cuda", "torch.built_for"),
        form=say("the CUDA of torch's build, such as {example}", example="12.8"), read=_cuda,
        decimal=True),
    Key(name="nccl", fields=("loading.libraries", "torch.nccl"), form=_version_such_as("2.27.5"),
        read=_version),
    _choice("gpu_kind", ("data-center", "workstation", "geforce", "jetson"),
            ("cuda_driver.init_code",)),
    Key(name="nvcc", fields=("toolkits.toolkits", "toolkits.selected_version"),
        form=_version_such_as("12.4"), read=_cuda, decimal=True),
    Key(name="gcc", fields=("toolkits.compilers",), form=_version_such_as("13.2"), read=_version),
    Key(name="clang", fields=("toolkits.compilers",), form=_version_such_as("18"), read=_version),
    Key(name="msc_ver", fields=("toolkits.compilers",),
        form=say("a number such as {example}", example="1940"),
        read=_version),
    Key(name="extension.name", fields=("extensions.extensions.0.package",),
        form=say("a name such as {example}", example="flash_attn"), read=_word),
    Key(name="extension.built_with_cuda",
        fields=("extensions.extensions.0.cuda", "extensions.extensions.0.built_with",
                "extensions.extensions.0.missing_libraries"),
        form=_version_such_as("12.4"), read=_cuda, decimal=True),
    Key(name="extension.code", fields=("extensions.extensions.0.codes",),
        form=say("codes such as {example}", example="sm_80,compute_90"), read=_code, many=True),
    Key(name="extension.cubins", fields=("extensions.extensions.0.codes",),
        form=say("codes such as {example}", example="sm_80,sm_90"), read=_code, many=True),
    Key(name="container", fields=("container.runtime",),
        form=say("true, false or a runtime such as {example}", example="docker"), read=_word),
    Key(name="cuda_compat", fields=("driver.compat_packages", "cuda_driver.cuda"),
        form=say("the CUDA version of the package, such as {example}", example="12.8"),
        read=_cuda_compat, decimal=True),
    Key(name="cuda_compat_active", fields=("cuda_driver.init_code", "cuda_driver.cuda"),
        form=say("true or false"), read=_flag),
    Key(name="cuda_error", fields=("cuda_driver.init_code", "cuda_driver.program_code"),
        form=say("a number or name such as {example}",
                 example=any_of(("804", "cudaErrorNoDevice"))),
        read=_word),
    Key(name="nvml_error", fields=("nvml.init_code", "nvml.gpus.0.lost"),
        form=say("a number or name such as {example}",
                 example=any_of(("18", "NVML_ERROR_GPU_IS_LOST"))),
        read=_word),
    Key(name="xid", fields=("kernel_log.xids", "kernel_log.fallen_off_bus"),
        form=say("numbers such as {example}", example="79"), read=_count, many=True),
    Key(name="nvswitch", fields=("pci.nvswitches",),
        form=say("a number, true or false"), read=_some),
    _choice("compute_mode", ("default", "exclusive-process", "exclusive-thread", "prohibited"),
            ("nvml.gpus.N.compute_mode",),
            {"e. process": "exclusive-process", "e. thread": "exclusive-thread"}),
    Key(name="other_processes", fields=("nvml.gpus.N.processes",),
        form=say("a number, true or false"), read=_some),
    Key(name="driver_package_installed",
        fields=("driver.packages", "driver.libcuda", "nvml.library_found"),
        form=say("true or false"), read=_flag),
    Key(name="nvidia_module_loaded", fields=("driver.module_loaded",), form=say("true or false"),
        read=_flag),
    Key(name="row_remap_pending", fields=("nvml.gpus.0.rows_pending",), form=say("true or false"),
        read=_flag),
    Key(name="row_remap_failure", fields=("nvml.gpus.0.rows_failed",), form=say("true or false"),
        read=_flag),
)
# fmt: on
KEYS: dict[str, Key] = {key.name: key for key in _KEYS}
ALIASES = {"toolkit": "nvcc", "cudnn": "cudnn_runtime"}


def read_words(words: Iterable[str]) -> Given:
    """Read ``key=value`` words of a command line.

    Raises:
        GivenError: a key or a value cannot be read.
    """
    given: Given = {}
    for word in words:
        name, equals, value = word.partition("=")
        key = _key(name.strip())
        if not equals:
            raise GivenError(
                say("{word} is not KEY=VALUE: write {name}=VALUE.", word=_safe(word), name=key.name)
            )
        _add(given, key, _split(key, value))
    return given


def read_object(facts: object) -> Given:
    """Read a JSON object of facts; ``extension`` may be an object of its parts.

    Raises:
        GivenError: it is not an object, or a key or a value cannot be read.
    """
    if not isinstance(facts, Mapping):
        raise GivenError(say("the facts must be a JSON object."))
    given: Given = {}
    try:
        for name, value in _flat(facts):
            key = _key(name)
            plain = _listed_packages(value) if key.name == "nvidia_packages" else value
            _add(given, key, _texts(key, plain))
    except GivenError:
        raise
    except ValueError as error:  # Python does not write out an integer of 5000 digits
        raise GivenError(say("the facts have a number with too many digits.")) from error
    return given


def _flat(facts: Mapping[object, object]) -> Iterable[tuple[str, object]]:
    for name, value in facts.items():
        if name == "extension" and isinstance(value, Mapping):
            yield from ((f"extension.{part}", part_value) for part, part_value in value.items())
        else:
            yield str(name), value


def _key(name: str) -> Key:
    known = (*KEYS, *ALIASES)
    found = same_name(name, known) or ""
    key = KEYS.get(ALIASES.get(found, found))
    if key is None:
        others = did_you_mean(name, known) or say("The keys are {keys}.", keys=in_series(known))
        raise GivenError(in_turn([say("{word} is not a key.", word=_safe(name)), others]))
    return key


def _split(key: Key, text: str) -> list[str] | None:
    text = text.strip()
    if text.lower() in NONE_WORDS:
        return None
    return [part.strip() for part in text.split(",")] if key.many else [text]


def _texts(key: Key, value: object) -> list[str] | None:
    """Return a JSON value as texts; None for null."""
    if value is None:
        return None
    if isinstance(value, list):
        return _of_list(key, value)
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, float) and not key.decimal:
        raise GivenError(
            say("{name} must be a string: as a number, 3.10 would be 3.1.", name=key.name)
        )
    if isinstance(value, (int, float)):
        if abs(value) > _LARGEST_NUMBER:  # Python refuses to write more than 4300 digits
            raise GivenError(
                say("{name} must be {form}, not a number this large.", name=key.name, form=key.form)
            )
        return [str(value)]
    if isinstance(value, str):
        return _split(key, value)
    raise GivenError(say("{name} must be {form}, not an object.", name=key.name, form=key.form))


def _of_list(key: Key, value: "list[object]") -> list[str]:
    if not key.many and len(value) != 1:
        raise GivenError(
            say("{name} takes one value, {form}, not a list.", name=key.name, form=key.form)
        )
    if len(value) > MOST_VALUES:
        raise GivenError(
            say(
                "{name} has more than {most} values.",
                name=key.name,
                most=MOST_VALUES,
            )
        )
    if any(isinstance(entry, list) for entry in value):
        raise GivenError(
            say("{name} must be {form}, not a list of lists.", name=key.name, form=key.form)
        )
    return [text for entry in value for text in _texts(key, entry) or ()]


def _listed_packages(value: object) -> object:
    """Return the packages of an object, or of pip's list of objects, as ``name==version``."""
    if isinstance(value, Mapping):
        value = [{"name": name, "version": version} for name, version in value.items()]
    return [_named_package(package) for package in value] if isinstance(value, list) else value


def _named_package(package: object) -> object:
    if isinstance(package, Mapping) and isinstance(package.get("version"), str):
        return f"{package.get('name', '')}=={package['version']}"
    return package


def _add(given: Given, key: Key, texts: list[str] | None) -> None:
    if key.name in given and not (key.many and texts and given[key.name]):
        raise GivenError(say("{name} is given twice, and takes one value.", name=key.name))
    if texts is None:
        given[key.name] = []
        return
    values = given.setdefault(key.name, [])
    values.extend(_value(key, text) for text in texts)
    if len(values) > MOST_VALUES:
        raise GivenError(
            say("{name} has more than {most} values.", name=key.name, most=MOST_VALUES)
        )


def _value(key: Key, text: str) -> str:
    if not text:
        raise GivenError(
            say("{name} has no value: it takes {form}, or none.", name=key.name, form=key.form)
        )
    try:
        if len(text) > LONGEST_VALUE:
            raise ValueError  # noqa: TRY301  # refused like any other value
        return key.read(text)
    except ValueError:
        refused = say(
            "{name} takes {form}, not {word}.", name=key.name, form=key.form, word=_safe(text)
        )
        near = did_you_mean(text, key.words)
        raise GivenError(in_turn([refused, near]) if near else refused) from None


def _safe(text: str) -> str:
    shown = made_visible(text[:60], lambda _char: "?")
    return f"{shown!r}"
