"""What reveals nothing about the user and is kept: public names in paths, settings in variables."""

import re
from functools import cache
from urllib.parse import urlsplit

from gpucheck.tables import Tables
from gpucheck.tables.packages import KnownPackages
from gpucheck.tables.torch import WheelIndexes

# Which values of variables are settings: numbers, devices, and words that libraries document.
#
# A variable is listed because its setting matters. If it holds anything else, a key that was pasted
# into the wrong line for example, nobody can tell what that is.

_PARTS = re.compile(r"[^A-Za-z0-9_]+")
_LONGEST = 4000
"""NVIDIA_REQUIRE_CUDA of an image for CUDA 13.0 has 2165 characters."""
_NUMBER = re.compile(
    r"0x[0-9a-fA-F]{1,16}|[0-9]{1,2}[af]|[0-9]{1,10}(?:[KMGTkmgt]i?[Bb]?|[mu]?s|gpu|_[0-9]{1,6})?"
)
_DEVICE = re.compile(
    r"(?:eth|en[a-z]?|eno|ens|enp|ib|ibp|ibs|bond|br|docker|lo|wl|wlan|wlp|veth|hsn|roce|rdma|mlx|mce"
    r"|bnxt_re|irdma|efa|rocep|net|mgmt|team|vlan|cni|cali|flannel|virbr|tun|tap|ipogif|opap|hfi"
    r"|sm_|compute_)(?:[0-9]{1,4}[a-z_]{0,6}){1,6}"
    r"|(?:[abhklmptv]|g[bh]|gtx|rtx|mi)[0-9]{1,4}[a-z]{0,2}"
)
"""Interfaces (``enp65s0f0np0``), adapters (``mlx5_bond_0``), architectures, models (``a100``)."""
_WORDS = frozenset(
    """
    true false yes no on off y n t f null none all void auto default unset enable enabled disable
    disabled
    lazy eager pci_bus_id fastest_first nodevfiles
    version warn info trace abort error debug detail verbose init coll p2p shm net graph tuning env
    alloc call proxy nvls bootstrap reg profile ras
    ring tree collnet collnetdirect collnetchain collnet_direct collnet_chain nvlstree pat simple
    ll ll128 loc nvl pix pxb phb node sys group parallel process af_inet af_inet6
    ib socket gpudirect aws libfabric ofi rccl ucx sharp spcx gin tuner plugin file
    docker0 lo eth ib mlx bond ens eno enp en wl roce hsn efa
    native backend cudamallocasync expandable_segments max_split_size_mb roundup_power2_divisions
    roundup_bypass_threshold_mb garbage_collection_threshold pinned_use_cuda_host_register
    pinned_use_background_threads pinned_num_register_threads release_lock_on_cudamalloc
    graph_capture_record_stream_reuse per_process_memory_fraction large_segment_size_mb
    compute utility graphics video display ngx compat32
    cuda arch brand driver tesla geforce quadro quadrortx titan titanrtx grid nvs nvidia nvidiartx
    vapps vpc vcs vws vgaming cloudgaming unknown
    gpu gpus mig shard kepler maxwell pascal volta turing ampere ada hopper blackwell ptx rtx gtx
    docker podman oci lxc containerd crio singularity apptainer enroot pyxis wsl systemd nspawn
    stdout stderr
    """.split()  # noqa: SIM905  # a list of words is most readable as words
)


def is_setting(value: str) -> bool:
    """Whether a value consists of numbers, devices, and words that libraries document."""
    return len(value) <= _LONGEST and all(map(_is_part, _PARTS.split(value)))


def _is_part(part: str) -> bool:
    return (
        not part
        or part.lower() in _WORDS
        or _NUMBER.fullmatch(part) is not None
        or _DEVICE.fullmatch(part) is not None
    )


# Names in paths that reveal nothing about the user: redaction keeps them.

SYSTEM_ROOTS = (
    "usr/bin", "usr/sbin", "usr/lib", "usr/lib32", "usr/lib64", "usr/libexec", "usr/include",
    "usr/share", "usr/src", "lib", "lib32", "lib64", "bin", "sbin", "proc", "sys", "dev", "etc",
    "boot", "opt/conda", "opt/nvidia", "opt/hpcx", "nix/store", "run/modprobe.d",
    "var/lib/shim-signed",
)  # fmt: skip
"""Folders of a Linux system below which every name is public; ``/run`` has media and users."""

_NAMES = """
. .. ~ usr local lib lib32 lib64 libexec bin sbin include share src etc var opt run tmp proc sys dev
boot root home Users user Public Shared mnt media srv nfs gpfs lustre scratch data work workspace
workspaces project projects app apps code software system shared storage disk volume conda mamba
miniconda miniconda2 miniconda3 anaconda anaconda2 anaconda3 miniforge miniforge3 mambaforge
micromamba envs pkgs base venv .venv env .env venvs .venvs virtualenv virtualenvs .virtualenvs
.local .cache .conda .pyenv .config .asdf .nv .triton .nix-profile pyenv pipx uv poetry pypoetry
hatch tools versions installs python pypy python.exe python3.exe pythonw.exe pip pip3 pip.exe
site-packages dist-packages lib-dynload plat-packages __pycache__ Scripts Lib DLLs Include Library
nvidia cuda nvcc nvcc.exe nvidia-smi nvidia-smi.exe nvvm cuda-compat compat stubs extras CUPTI
targets torch torch.py not_torch not_torch.py torch.pyc torchgen
torchvision torchaudio torchtext triton functorch numpy
cudnn cublas cufft cufile curand cusolver cusparse cusparselt cuda_cccl cuda_cupti cuda_nvcc
cuda_nvrtc cuda_runtime cuda_runtime_api nccl nvjitlink nvtx nvshmem cu11 cu12 cu13 version.py
version.json version.txt cuda_version.json pyvenv.cfg direct_url.json METADATA RECORD INSTALLER
WHEEL xformers apex flash_attn deepspeed transformers vllm bitsandbytes _C conda-meta history
ubuntu debian linux x86_64-linux-gnu aarch64-linux-gnu x86_64-linux aarch64-linux sbsa-linux
x86_64 aarch64 x64 gcc g++ cc c++ clang clang++ cl.exe ld.so.conf ld.so.conf.d ld.so.cache wsl mps
Windows System32 SysWOW64 DriverStore FileRepository ProgramData AppData Roaming Programs Python
PythonSoftwareFoundation WindowsApps Microsoft NVSMI CUDA CUDNN Cellar Frameworks Library
Python.framework Versions Current Applications linuxbrew .linuxbrew modules modulefiles spack
easybuild eb stack cvmfs sw linux-x86_64 singularity apptainer enroot docker containers hpc_sdk
Linux_x86_64 comm_libs math_libs compilers runfile overlay kaggle working content drive site
pip.conf pip.ini .pip uv.toml .condarc wsl$ wsl.localhost .bashrc .bash_profile .profile .zshrc .ssh
.netrc .gitconfig state gpu-env log fabricmanager.log
.dockerenv .singularity.d .containerenv __init__.py EXTERNALLY-MANAGED top_level.txt glibc-hwcaps
""".split()  # noqa: SIM905  # a list of words is most readable as words

NAMES = frozenset(
    (*_NAMES, "Program Files", "Program Files (x86)", "NVIDIA Corporation",
     "NVIDIA GPU Computing Toolkit", "Python Software Foundation", "Microsoft Visual Studio")
)  # fmt: skip
_PATTERN = re.compile(
    r"(?:python|pypy|cpython|Python|pip|gcc|g\+\+|clang|clang\+\+|cuda|cudnn|nvidia|libcu|nccl"
    r"|cp|torch|tensorrt)[-_]?v?[0-9][0-9A-Za-z._+-]*"  # python3.11, cuda-12.4, gcc-12
    r"|python[0-9.]*-venv|v?[0-9]+(?:\.[0-9]+)+|[0-9]{1,2}|[A-Za-z]:?"  # 12.4, v12.4, C:
    r"|lib[\w+-]+\.(?:so|a|dylib)[0-9.]*"
    r"|(?:nvidia|cuda|cudart|cudnn|cublas|nvrtc|nvml|nv|torch|c10|cu)\w*\.(?:so|dll|ko|py)[0-9.]*"
    r"|_C(?:\.[\w#-]+)?\.(?:so|pyd)|x86-64-v[0-9]"
    r"|[\w.+-]+\.(?:dist|egg)-info|(?:lib)?nvidia-[a-z-]+"
    r"|(?:cuda|cudnn|nccl|cublas|nvml|torch)\w*\.h"
    r"|[?*\[\]]+|(?:cuda|lib|python|torch|nvidia)[\w.-]*\*[\w.*-]*"  # shell patterns
)
# The forms of the name of a compiled module: its stem is that of a package.
_MODULE = re.compile(
    r"(?P<stem>[a-z][a-z0-9_]*)(?:\.cpython-\w+(?:-[\w-]+)?|\.abi3|\.cp\w+-\w+)?\.(?:so|pyd)"
)
_OF_MODULES = frozenset("c cpu cuda ext extension gpu hip kernel kernels lib ops torch".split())  # noqa: SIM905
_FOR_CUDA = re.compile(r"-cu(?:da)?[0-9]{2,3}x?\Z")
HOMES = frozenset(("home", "homes", "users"))
"""The name that follows one of these, in lower case, is a user name."""
NO_USERS = frozenset(("Public", "Shared", "Default", "root", "linuxbrew", ".linuxbrew"))

_INDEX_WORDS = frozenset(
    """
    simple pypi web whl pytorch anaconda cloud pkgs main free r msys2 conda repository api packages
    dist index.html latest stable en docs html v1
    """.split()  # noqa: SIM905
)
_WHEEL = re.compile(r"(?P<project>[A-Za-z0-9][\w.]{0,99})-\d[\w.+%-]{0,200}\.(?:whl|tar\.gz|conda)")
_OF_BUILDS = re.compile(
    r"cu\d{2,3}|cpu|nightly|rocm\d[\d.]{0,6}|label|linux-\w{2,10}|noarch|win-64"
)
SITES = (
    "pytorch.org", "github.com", "githubusercontent.com", "gitlab.com", "nvidia.com", "nvidia.cn",
    "python.org", "anaconda.org", "anaconda.com", "huggingface.co",
    "hf.co", "docker.com", "docker.io", "quay.io", "ghcr.io", "nvcr.io", "gcr.io",
    "stackoverflow.com", "microsoft.com", "aka.ms", "google.com", "kernel.org", "ubuntu.com",
    "debian.org", "redhat.com", "fedoraproject.org", "kubernetes.io", "open-mpi.org",
    "wikipedia.org", "arxiv.org", "vllm.ai", "ray.io", "example.com", "example.org", "localhost",
)  # fmt: skip
"""Sites that everybody knows, and whose addresses therefore tell nothing of a machine."""
_PARTS_OF_SITES = frozenset(
    """
    www docs download developer forums discuss dev-discuss files raw gist api cdn static packages
    conda repo hub registry registry-1 archive security catalog learn community pypi test index us
    objects codeload
    """.split()  # noqa: SIM905
)
"""What stands before such a name; anything else may be that of a customer."""
CHANNELS = frozenset(
    """
    defaults main free r msys2 anaconda conda-forge pytorch pytorch-nightly pytorch-test
    pytorch-lts pytorch3d nvidia bioconda rapidsai rapidsai-nightly xformers intel huggingface
    fastai pyg dglteam fvcore iopath numba plotly microsoft pypi
    """.split()  # noqa: SIM905
)
"""Channels of conda that everybody may use."""

ORDINARY = frozenset(
    """
    root user users admin administrator guest test tester demo dev developer build builder runner
    ubuntu debian fedora centos linux windows nvidia cuda gpu gpus torch pytorch python driver
    drivers kernel module library libraries error errors warning failed failure device devices
    file files folder path system host hosts node nodes server client master worker localhost
    local remote machine computer cluster docker podman container containers conda anaconda pip
    nvml cudnn nccl cublas main default none null true false with from that this there here not
    the and for was were has have can cannot could found read open opened denied permission
    program process memory data home work desktop laptop pc box lab ai ml research student team
    attention core extension extensions kernels model models ops package packages utils
    all and id job jobs rank ranks state reason drain nodename scontrol srun sinfo dcgmi diag dmesg
    oom segfault killed http https route addr brief describe cordon kubectl mpirun torchrun
    meanwhile slurm hadoop spark ray jupyter jovyan mambauser vscode ec2-user azureuser vagrant
    kaggle colab nonroot appuser nobody daemon nixos archlinux www-data postgres git
    gpucheck install uninstall remove purge update upgrade list show check enable disable start
    stop restart reset reboot status set unset export echo grep head tail tee cat index index-url
    extra-index-url channel freeze download run exec import print sudo chmod chown usermod modprobe
    rmmod systemctl service sed apt apt-get dnf yum zypper uv curl wget test tests fresh peer route
    which where stat logs log video render soft hard free dump args process project shared rules
    limits devel headers open server build-essential collect compat selftest preflight triage diff
    kube-system kube-public gpu-operator nvidia-gpu-operator hidden cpu
    version release answer answered environment command timed out output input number name names
    """.split()  # noqa: SIM905
)
"""Words that have a meaning of their own in messages, even if they are a host or user name."""

_PROGRAM = re.compile(
    r"(?i)(?:python|pypy|ipython|uvicorn|gunicorn|torchrun|deepspeed|accelerate|jupyter[\w-]{0,12}|"
    r"ray(?:let|::\w{0,6})?|pt_\w{1,16}|vllm[\w:-]{0,12}|sglang[\w:-]{0,12}|ollama[\w-]{0,12}|"
    r"llama[\w.-]{0,12}|triton\w{0,12}|blender|ffmpeg|matlab|julia|java|node|chrome|chromium|firefox|"
    r"xorg|xwayland|gnome-\w{1,12}|kwin\w{0,12}|plasmashell|steam\w{0,12}|obs|code|bash|sh|zsh|"
    r"nvidia-[\w-]{1,16}|nv-\w{1,12}|nvc|nvcc|ncu|nsys|dcgm[\w-]{0,12}|dcgmi|cuda-\w{1,12}|cicc|ptxas|"
    r"nccl-tests|all_reduce_\w{1,12}|mpirun|orted|prted|slurmd|slurmstepd|systemd[\w-]{0,12}|containerd"
    r"[\w-]{0,12}|dockerd|kubelet|irq/[\w-]{1,20}|kworker/[\w:+-]{1,20}|swapper/?\d{0,4}|insmod|"
    r"modprobe|modtrack|rmmod|train|trainer|training|worker|main|serve|server|inference|infer|infinity|"
    r"eval|bench\w{0,8}|test\w{0,4}|a\.out)(?:[\d.]{0,8}t?)(?:\.(?:py|exe|bin))?|unknown"
)
"""What programs are called that everybody has, or anybody would call so."""
_IMAGES = frozenset(
    """
    library nvidia pytorch huggingface vllm lmsysorg ollama rapidsai tensorflow jupyter rayproject
    continuumio condaforge mambaorg anaconda rocm intel ubuntu debian bitnami kaggle-gpu-images
    kaggle-images deeplearning-platform-release deeplearning astral-sh open-webui pypa kubeflow
    kubeflownotebookswg runpod deepspeed axolotlai unsloth paddlepaddle modelscope comfyanonymous
    ggml-org ggerganov pyg-team determinedai volcanosh kserve triton-inference-server
    """.split()  # noqa: SIM905
)
"""Owners of images that everybody pulls."""


def is_program(name: str) -> bool:
    """Whether a process has a name that tells nothing of whose it is."""
    return _PROGRAM.fullmatch(name) is not None


def is_public_image(repository: str) -> bool:
    """Whether an image is one that everybody pulls, by who owns it."""
    first, _, rest = repository.partition("/")
    owner = rest.partition("/")[0] if "." in first or first == "localhost" else first
    return owner in _IMAGES


_LOWER = frozenset(name.lower() for name in NAMES)


def is_public(name: str, *, windows: bool = False) -> bool:
    """Whether the name of a folder or a file reveals nothing about the user."""
    found = name.lower() in _LOWER if windows else name in NAMES
    if found or _PATTERN.fullmatch(name) is not None:
        return True
    plain = name == name.lower() or windows
    return plain and (_packages().known(name) is not None or _is_public_module(name))


def _is_public_module(name: str) -> bool:
    """Whether it is a compiled module of a public package, by its plain name.

    ``flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so`` is; ``acme_ops.so`` and
    ``flash_attn_acme.so`` are not.
    """
    found = _MODULE.fullmatch(name.lower())
    if found is None:
        return False
    words = found["stem"].split("_")
    starts = ("-".join(words[:count]) for count in range(len(words), 0, -1))
    package = next((start for start in starts if _packages().known(start) is not None), None)
    rest = words[package.count("-") + 1 :] if package else ["?"]
    return all(word in _OF_MODULES or word.isdecimal() for word in rest)


def is_public_package(name: str) -> bool:
    """Whether a distribution, or its folder, is known to be public.

    Those for one CUDA (``spconv-cu120``) are as public as the others. An ordinary word is not a
    name.
    """
    return " " in name or _packages().known(_FOR_CUDA.sub("", name.lower())) is not None


def is_public_host(name: str) -> bool:
    """Whether a host is one of a site that everybody knows."""
    lower = name.lower()
    while (part := lower.partition("."))[0] in _PARTS_OF_SITES:
        lower = part[2]
    return lower in SITES or name.lower() in index_hosts()


def is_of_index(word: str) -> bool:
    """Whether a name in the path of a package index says what it is and not whose."""
    if word in _INDEX_WORDS or word in CHANNELS or _OF_BUILDS.fullmatch(word):
        return True
    wheel = _WHEEL.fullmatch(word)
    return wheel is not None and is_public_package(wheel["project"].replace("_", "-"))


@cache
def index_hosts() -> frozenset[str]:
    """Return the hosts of package indexes that are in our tables: they reveal nothing.

    Every other host becomes a pseudonym, mirrors that everybody may use among them.
    """
    rows = Tables().get(WheelIndexes).rows
    return frozenset(host for row in rows if (host := urlsplit(row.address).hostname))


@cache
def _packages() -> KnownPackages:
    """Read the table of packages on first use: not every run redacts."""
    return Tables().get(KnownPackages)
