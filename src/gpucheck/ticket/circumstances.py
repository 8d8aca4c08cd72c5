"""The circumstances of a text, and what they change: what to ask its author for, and what to do."""

import itertools
import re
from collections.abc import Iterable, Mapping

import msgspec

from gpucheck.facts.claims import Fix
from gpucheck.facts.request import Pasted
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.torch import Packages
from gpucheck.language import Sentence, say
from gpucheck.log_patterns.roles import PRINTED, role_of
from gpucheck.log_patterns.text import Text
from gpucheck.ticket.complaints import TITLE, WEB_ADDRESS, is_wish

# What a text computes with, and what else is to be told apart.

_FRAMEWORKS = {
    # Not a folder of somebody's: /home/paddle.
    "PaddlePaddle": r"(?<!/home/)(?<!users\\)paddle", "TensorFlow": "tensorflow",
    "ONNX Runtime": "onnxruntime|onnxgpu", "CTranslate2": "ctranslate2", "MXNet": "mxnet",
    "Darknet": "darknet", "Caffe": r"(?<![\w/])caffe\b|/caffe[/.]", "CuPy": "cupy",
    # A list of packages has jaxlib, too.
    "JAX": r"\bimport jax\b|\bjax\.(?:devices|numpy|random)|jaxlib[/\\]|xla_bridge",
    "llama.cpp": r"llama\.cpp", "whisper.cpp": r"whisper\.cpp", "Ollama": "ollama",
}  # fmt: skip
"""Frameworks whose installation is none of PyTorch's, with what a text about them has."""
_OF_FRAMEWORKS = (
    "paddle", "tensorflow", "onnxruntime", "onnxgpu", "ctranslate2", "mxnet", "darknet", "caffe",
    "cupy", "jax", "xla_bridge", "llama.cpp", "whisper.cpp", "ollama",
)  # fmt: skip
"""One of them is in each text about a framework."""
_OF_TORCH = ("torch", "caffe2", "3c10", "c10::", "libc10", "aten/")
"""PyTorch and its own C++ libraries and namespaces: caffe2::TypeMeta is no Caffe."""
_TORCH = re.compile(r"torch|cu1[123]\d\b", re.IGNORECASE)

_VISIBLE, _OLDER_NUMPY = "CUDA_VISIBLE_DEVICES", "pip install 'numpy<2'"

COLLECT_ENV = "python -m torch.utils.collect_env"
RUN = say("the command that you run, with its complete output up to the error")
_INSTALLS = re.compile(r"\b(?:un)?install|安装|装不上", re.IGNORECASE)

ASKS, GROWS, SLOW = "asks", "grows", "slow"
BUILDS, NOT_PYTHON, TORCH_FAILS = "builds", "not-python", "torch-fails"
DRIVER_WAITS, HANGS, NCCL_FAILS, RANKS_HANG = "driver-waits", "hangs", "nccl-fails", "ranks-hang"
ENVIRONMENT_SHOWN, HOSTED, IN_NOTEBOOK = "environment-shown", "hosted", "in-notebook"
ON_ARCH, ON_FEDORA, ON_NIXOS = "on-arch", "on-fedora", "on-nixos"
"""Circumstances of a text: each changes what shows more."""
_HOSTED = ("colab", "kaggle", "/content/")
_NOTEBOOKS = (*_HOSTED, "jupyter", "ipykernel", "ipython-input", ".ipynb")
_OF_ENVIRONMENT = ("[pip3] torch==", "[conda] pytorch ")
_OF_APT = ("ubuntu", "debian", "linux mint")
_SYSTEMS = {
    ON_ARCH: ("arch linux", "archlinux", "manjaro", "endeavouros"),
    ON_FEDORA: ("fedora", "rocky linux", "almalinux", "red hat enterprise"),
    ON_NIXOS: ("nixos", "/nix/store/"),
}
"""Systems that have no apt, with what a text about them has."""
_INSTEAD_OF_APT = {
    ON_ARCH: {
        "sudo apt install linux-headers-$(uname -r)": "sudo pacman -S linux-headers",
        "sudo apt install build-essential python3-dev": "sudo pacman -S base-devel python",
        "sudo apt install build-essential": "sudo pacman -S base-devel",
    },
    ON_FEDORA: {
        "sudo apt install linux-headers-$(uname -r)": "sudo dnf install kernel-devel-$(uname -r)",
        "sudo apt install build-essential python3-dev":
            "sudo dnf install gcc-c++ make python3-devel",
        "sudo apt install build-essential": "sudo dnf install gcc-c++ make",
    },
}  # fmt: skip
"""https://wiki.archlinux.org/title/Dynamic_Kernel_Module_Support, https://rpmfusion.org/Howto/NVIDIA"""
_NCCL_FAILS = (
    "nccl error", "nccl library error", "ncclunhandled", "ncclsystem", "ncclinternal",
    "ncclinvalid", "ncclremote", "nccl warn", "[c10d]", "rendezvouserror",
    "rendezvousconnectionerror", "rendezvoustimeouterror",
)  # fmt: skip
_SEVERAL = (
    "nccl", "ddp", "torchrun", "torch.distributed", "deepspeed", "multi-gpu", "multi-node",
    "multi gpu", "multi node", "multinode", "tensor-parallel", "tensor_parallel", "nproc_per_node",
    "fsdp", "init_process_group", "two nodes", "2 nodes", "多卡", "多机", "accelerate launch",
    "tensor parallel",
)  # fmt: skip
_STILL = re.compile(
    r"\b(?:hangs?|hung|hanging|stuck|freez\w{1,4}|froze)\b|卡住|卡死|挂起|挂住|不动"
)
_OF_STILL = ("hang", "hung", "stuck", "freez", "froze", "卡", "挂", "不动")
_SMI_WAITS = re.compile(
    r"nvidia-smi.{0,24}\b(?:hangs?|hung|stuck|freezes|froze|never returns)\b"
    r"|nvidia-smi.{0,12}卡[住死]"
)
_GROWS = re.compile(
    r"(?:显存|内存).{0,40}?(?:不释放|释放不|没有?释放|无法释放|增加|增长|上涨|往上涨|涨[到一]|变大|越来越)"
    r"|\b(?:memory|vram)\b.{0,40}?\b(?:keeps? (?:growing|increasing|rising)|grows|increases|leaks?"
    r"|(?:is|was) increasing|not (?:being )?released)\b"
)
_OF_GROWTH = ("显存", "内存", "memory", "vram")
_SLOW = re.compile(r"\b(?:slow(?:er)?|slowness)\b|[很太好特极较]慢|变慢")
_BUILD = re.compile(
    r"ninja: build stopped|error compiling objects for extension|nvcc(?:\.exe)?\W{1,3}failed with"
    r"|errors? detected in the compilation of|\b(?:can.?t|cannot|could not|fail\w{0,3} to|doesn.?t"
    r"|won.?t|trouble|problems?|errors?)\b[^.,;]{0,24}\b(?:compil(?:e|ing)|build(?:ing)?)\b"
    r"|\bcompil(?:e|ation|ing) (?:error|fail)|\bbuild (?:error|fail)"
    r"|编译.{0,8}(?:失败|报错|出错|错误|不)"
    r"|failed (?:to build|building)"
)
_OF_BUILD = ("compil", "build", "nvcc", "编译")
_TORCH_FAILS = (
    "from torch._c import", "_load_global_deps", "no module named 'torch'",
    'no module named "torch"', "no module named torch\n", r"torch\lib", "_load_dll_libraries",
    "no matching distribution found for torch", "satisfies the requirement torch",
)  # fmt: skip
_NOT_PYTHON = ("devicequery", "bandwidthtest", "all_reduce_perf", "hashcat", "cudarc", "vkallocate")
_ASKED = re.compile(
    r"\b(?:could|would|did|do) you\b|\b(?:can|may|could) (?:i|we)\b"
    r"|\bplease (?:add|provide|support)\b"
    r"|\bhow (?:much|many)\b|\bwhere do i\b|\bwould that be\b"
    r"|\bdoes it (?:run|support|work) (?:on|with)\b|\bdid anyone\b"
    r"|支持|能不能|可不可以|可以.{0,12}吗|能(?:在|用|跑|够|否).{0,24}|多少|多大|几张|哪个版本|考虑"
)
"""A wish, or a question what is possible or needed."""
_WRONG = re.compile(
    r"\b(?:errors?|fail\w{0,3}|crash\w{0,3}|wrong|broken|problems?|issues?|bugs?|cannot|unable|why)\b"
    r"|\b(?:do|does|did|is|was|wo|ca|could|are)n['\u2019]?t\b|\bnan\b"
    r"|\bnot (?:work|found|us|detect|recogni)"
    r"|\b(?:help me|any(?:body|one) help|refuses?|always|minutes|hours|forever|normal)\b|\bslow"
    r"|挂了|爆|不到|不识别|没装|分钟|正常|怎么办|坏了|一直|[变慢低]了|很[慢低]"
    r"|报错|错误|失败|用不了|不能用|没有?(?:发现|用)|[找检].{0,2}不到|无法|没法|不起作用|为什么|为啥"
)
_OF_DEBIAN = re.compile(r"sudo (?:apt|apt-get|dkms) ")
_SHORT = 600
"""Chosen: characters of a text that may be nothing but a question."""
_MOST = 60
"""Chosen: lines with each of the words that are looked at; a log repeats them without end."""
_LITERALS = (
    *_NOTEBOOKS, *_OF_ENVIRONMENT, *_TORCH_FAILS, *_NOT_PYTHON, *_OF_STILL, *_SEVERAL, *_OF_BUILD,
    *_NCCL_FAILS, *_OF_GROWTH, *_OF_APT, *itertools.chain(*_SYSTEMS.values()),
    "nvidia-smi", "torch",
)  # fmt: skip
_LONGEST = 400
"""Chosen: characters of a line that are looked at. Longer lines are output, not sentences."""


def framework_of(text: Text) -> str | None:
    """Return the framework that a text names most, unless it names PyTorch."""
    held = text.held(_OF_FRAMEWORKS)
    if not held or any(sign in text.lower for sign in _OF_TORCH):
        return None
    without = WEB_ADDRESS.sub("", text.lower)
    counts = {name: len(re.findall(words, without)) for name, words in _FRAMEWORKS.items()}
    return max(filter(counts.get, counts), key=lambda name: counts[name], default=None)


def circumstances_in(text: Text) -> list[str]:
    """Return what changes what to ask for."""
    held = frozenset(text.held(_LITERALS))
    found = {
        IN_NOTEBOOK: _in_a_notebook(text, held),
        HOSTED: not held.isdisjoint(_HOSTED),
        ENVIRONMENT_SHOWN: not held.isdisjoint(_OF_ENVIRONMENT),
        TORCH_FAILS: not held.isdisjoint(_TORCH_FAILS),
        NOT_PYTHON: "torch" not in held and not held.isdisjoint(_NOT_PYTHON),
    }
    if held.isdisjoint(_OF_APT):
        found |= {system: not held.isdisjoint(names) for system, names in _SYSTEMS.items()}
    if is_wish(text):
        found[ASKS] = True
    else:
        stands_still = _any_line(text, held.intersection(_OF_STILL), _STILL)
        waits = stands_still and _any_line(text, held.intersection(["nvidia-smi"]), _SMI_WAITS)
        found |= {
            ASKS: _is_question(text),
            DRIVER_WAITS: waits,
            RANKS_HANG: stands_still and not held.isdisjoint(_SEVERAL),
            HANGS: stands_still,
            GROWS: _any_line(text, held.intersection(_OF_GROWTH), _GROWS),
            SLOW: any(_SLOW.search(line.text.lower()) for line in text.lines[:TITLE]),
            BUILDS: _any_line(text, held.intersection(_OF_BUILD), _BUILD, printed=True),
            NCCL_FAILS: not held.isdisjoint(_NCCL_FAILS),
        }
    return [name for name, holds in found.items() if holds]


def _in_a_notebook(text: Text, held: frozenset[str]) -> bool:
    """Whether the program runs in a notebook; the address of one is where somebody read."""
    signs = held.intersection(_NOTEBOOKS)
    return bool(signs) and (signs != {".ipynb"} or ".ipynb" in WEB_ADDRESS.sub("", text.lower))


def _is_question(text: Text) -> bool:
    """Whether a short text only asks, and says of nothing that it fails."""
    lower = text.lower
    if len(lower) > _SHORT:
        return False
    return _ASKED.search(lower) is not None and _WRONG.search(lower) is None


def _any_line(
    text: Text, literals: frozenset[str], words: re.Pattern[str], *, printed: bool = False
) -> bool:
    """Whether a line has such words; of what programs print only if ``printed``."""
    return any(
        words.search(text.lines[index].text[:_LONGEST].lower())
        and (printed or role_of(text, index) not in PRINTED)
        for index in (text.find(*literals, most=_MOST) if literals else ())
    )


def asked_about(pasted: Pasted) -> str:
    """Return what would show more: a command, or a sentence."""
    around = pasted.circumstances or ()
    if DRIVER_WAITS in around:
        return say(
            "what `sudo dmesg` and `ps -eo pid,stat,wchan:32,args` print about nvidia: whatever "
            "asks the driver would wait, too"
        )
    if BUILDS in around:
        return say(
            "the output of the build from the first error on, and the releases of the compiler, "
            "of nvcc and of {framework}",
            framework=pasted.computes_with or "PyTorch",
        )
    if growing := while_growing(pasted):
        return growing
    if _INSTALLS.search(pasted.complaint or ""):
        return say(
            "the command that installs it with its complete output, and the output of `nvidia-smi`"
        )
    return _of_ranks(around) or _of_environment(pasted)


def _of_ranks(around: Iterable[str]) -> Sentence | None:
    """Return what shows why ranks wait or fail."""
    if RANKS_HANG in around:
        return say(
            "the command that starts the ranks, the output of all of them with NCCL_DEBUG=INFO, "
            "and that of `py-spy dump --pid PID` for those that hang"
        )
    if NCCL_FAILS in around:
        return say(
            "the command that starts the ranks, and the output of all of them with NCCL_DEBUG=INFO"
        )
    return None


def _of_environment(pasted: Pasted) -> str:
    """Return what shows the state of the environment, or what the program does in it."""
    around = pasted.circumstances or ()
    if ENVIRONMENT_SHOWN in around or COLLECT_ENV.rpartition(".")[2] in (pasted.readers or ()):
        return while_slow(pasted) or RUN
    if pasted.computes_with:
        return say(
            "the output of `nvidia-smi`, the release of {framework} and how it was installed",
            framework=pasted.computes_with,
        )
    if NOT_PYTHON in around:
        return say("the complete output of the program, and that of `nvidia-smi`")
    if TORCH_FAILS in around:
        return say("the complete traceback, and the output of `python -m pip list`")
    if HANGS in around:
        return say(
            "the output of `nvidia-smi` while the program runs, and that of "
            "`python -m torch.utils.collect_env`"
        )
    return while_slow(pasted) or COLLECT_ENV


def while_slow(pasted: Pasted) -> Sentence | None:
    """Return what shows why a program is slow; None if nobody says that it is."""
    if SLOW not in (pasted.circumstances or ()):
        return None
    return say(
        "the seconds that a step takes, and the output of `nvidia-smi` while the program runs"
    )


def while_growing(pasted: Pasted) -> Sentence | None:
    """Return what shows who keeps memory that grows; None if nobody says that it does.

    https://docs.pytorch.org/docs/stable/notes/cuda.html, Memory management.
    """
    if GROWS not in (pasted.circumstances or ()) or pasted.computes_with:
        return None
    return say(
        "what `torch.cuda.memory_allocated()` and `torch.cuda.memory_reserved()` return after each "
        "step or request (PyTorch keeps freed memory for itself, so that the reserved part does "
        "not shrink; if the allocated part grows, the program still holds tensors)"
    )


# What a fix of a message becomes.


def fixes_here(fixes: tuple[Fix, ...], snapshot: Snapshot) -> tuple[Fix, ...]:
    """Return what a message says to do, as it is done where the text comes from."""
    pasted = snapshot.get(Pasted)
    if pasted.computes_with:
        fixes = _without_torch(fixes, pasted.computes_with)
    around = pasted.circumstances or ()
    if IN_NOTEBOOK in around:
        fixes = tuple(map(_in_notebook, fixes))
    if ON_NIXOS in around:
        fixes = tuple(fix for fix in fixes if not any(map(_OF_DEBIAN.match, fix.commands))) or fixes
    for system in {*around} & {*_INSTEAD_OF_APT}:
        fixes = tuple(_installed_there(fix, _INSTEAD_OF_APT[system]) for fix in fixes)
    numpy = snapshot.get(Packages).find("numpy")
    release = (numpy.version if numpy is not None else None) or ""
    if release.startswith(("0.", "1.")):
        fixes = tuple(_numpy_again(fix, release) for fix in fixes)
    return fixes


def _installed_there(fix: Fix, instead: Mapping[str, str]) -> Fix:
    """Return a fix with the commands of another package manager."""
    commands = tuple(instead.get(command, command) for command in fix.commands)
    return fix if commands == fix.commands else msgspec.structs.replace(fix, commands=commands)


def _without_torch(fixes: tuple[Fix, ...], framework: str) -> tuple[Fix, ...]:
    """Leave out what to do about PyTorch, where the program computes with something else."""
    kept = [
        fix for fix in fixes if not any(map(_TORCH.search, (fix.text, fix.verify, *fix.commands)))
    ]
    if len(kept) < len(fixes):
        its_own = say(
            "The program computes with {framework}, not PyTorch: its installation page says which "
            "release and which CUDA and cuDNN fit the GPU and the driver.",
            framework=framework,
        )
        kept.append(Fix(text=its_own, verify="nvidia-smi"))
    return tuple(kept)


def _in_notebook(fix: Fix) -> Fix:
    """Return a fix as a notebook has it, where a shell's unset ends with the shell."""
    if (
        f"unset {_VISIBLE}" not in fix.commands
        and f"Remove-Item Env:{_VISIBLE}" not in fix.commands
    ):
        return fix
    text = say(
        "In the notebook's first cell, before torch is imported, run "
        "`import os; print(os.environ.pop('CUDA_VISIBLE_DEVICES', None))`. If the program sets the "
        "variable itself, correct it there. Then restart the runtime. In Colab, Runtime > Change "
        "runtime type chooses a GPU."
    )
    return Fix(text=text, commands=("nvidia-smi -L",), verify=fix.verify)


def _numpy_again(fix: Fix, release: str) -> Fix:
    """Return what to do where the NumPy that a fix would install is installed."""
    if _OLDER_NUMPY not in fix.commands:
        return fix
    text = say(
        "The text shows NumPy {release}, the right one. Another NumPy is loaded, or one of the two "
        "installations is damaged: the first command prints which files are loaded. The second one "
        "installs NumPy anew in that environment.",
        release=release,
    )
    anew = f"python -m pip install --force-reinstall --no-cache-dir numpy=={release}"
    shows = (
        'python -c "import numpy, torch; print(numpy.__version__, numpy.__file__, torch.__file__)"'
    )
    return Fix(text=text, commands=(shows, anew), verify=fix.verify)
