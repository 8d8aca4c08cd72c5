"""Texts that point to not-gpu-related: Python programs, their packages, files and network."""

from gpucheck.signatures.base import Cure, Signature

_RAISE_OPEN_FILES = (
    Cure(
        text=(
            "Raise the limit on open files, or let DataLoader workers "
            "share through the file system."
        ),
        zh="提高打开文件数上限，或让 DataLoader 通过文件系统共享。",
        commands=("ulimit -n 65535",),
    ),
)

SIGNATURES = (
    Signature(
        name="audio-backend",
        literal="backend",
        pattern=(
            r"Backend [\"']?(?:soundfile|sox|sox_io|ffmpeg)[\"']? is not one of"
            r"|missing [\"'`]?(?:soundfile|sox|ffmpeg)[\"'`]? (?:backend|package|library)"
        ),
        weight=80,
        says="A library that reads sound files is not installed; no GPU plays a part",
        sample='RuntimeError: Backend "soundfile" is not one of available backends: [].',
        other="the soundfile backend is used",
        cures=(
            Cure(
                text="Install a library that reads sound files.",
                zh="安装一个读取音频文件的库。",
                commands=("pip install soundfile",),
            ),
        ),
        beside=("soundfile|sox|ffmpeg", "not one of|missing"),
    ),
    Signature(
        name="wheel-of-another",
        literal="is not a supported wheel on this platform",
        pattern=(
            r"ERROR: (?!\S{0,120}(?:torch|flash|xformers|triton|bitsandbytes|vllm|apex|mmcv|natten"
            r"|gsplat|deepspeed|sage|_cu\d|cu1\d|nvidia))\S{1,200}\.whl is not a supported wheel"
        ),
        weight=76,
        says="This wheel is for another Python, platform or C library; it is none of PyTorch's",
        sample=(
            "ERROR: dlib-19.24.2-cp311-cp311-linux_x86_64.whl is not a supported wheel on this "
            "platform."
        ),
        other="ERROR: torch-2.4.0-cp311-cp311-linux_x86_64.whl is not a supported wheel",
    ),
    Signature(
        name="no-space",
        literal="no space left on device",
        pattern=r"OSError: \[Errno 28\] No space left on device",
        weight=50,
        says="The disk is full",
        sample="OSError: [Errno 28] No space left on device: '/data/checkpoint'",
        other="NCCL WARN No space left on device",
        unless=(
            "fact:cuda_available=true",
            "/dev/shm",
        ),
    ),
    Signature(
        name="ssl",
        literal="certificate_verify_failed",
        pattern=r"CERTIFICATE_VERIFY_FAILED",
        weight=50,
        says="A certificate is not trusted",
        sample="ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED]",
        other="certificate",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="hub",
        literal="huggingface",
        pattern=(
            r"(?:huggingface_hub|HTTPError|HfHub|LocalEntryNotFound|OSError: "
            r"We couldn't connect).{0,120}(?:401|403|404|huggingface\.co)"
        ),
        weight=50,
        says="A download from a model hub fails",
        sample=(
            "huggingface_hub.utils._errors.HTTPError: 401 Client Error: "
            "Unauthorized for url: https://huggingface.co/x"
        ),
        other="huggingface transformers",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="timeout-net",
        literal="readtimeouterror",
        pattern=(
            r"ReadTimeoutError|ConnectTimeoutError|NewConnectionError.{0,40}Failed "
            r"to establish"
        ),
        weight=46,
        says="A download fails",
        sample=(
            "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='pyp"
            "i.example.org', port=443): Read timed out."
        ),
        other="timeout",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="module",
        literal="no module named",
        pattern=(
            r"(?<!initialize NumPy: )No module named \W?(?P<module>(?!torch)[A-Za-z_][\w.]{0"
            r",60})"
        ),
        weight=34,
        says="The Python package {module} is not installed",
        sample="ModuleNotFoundError: No module named 'sklearn'",
        other="No module named 'torch'",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="import-name",
        literal="cannot import name",
        pattern=(
            r"cannot import name '(?P<what>\w{1,60})' from '(?P<module>(?!torch\b)[\w.]{1,80"
            r"})'"
        ),
        weight=34,
        says="{module} does not have {what}: another version of it is needed",
        sample="ImportError: cannot import name 'cached_download' from 'huggingface_hub'",
        other="cannot import name 'x' from 'torch'",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="file",
        literal="filenotfounderror",
        pattern=(
            r"FileNotFoundError: \[Errno 2\] No such file or directory: "
            r"'(?P<file>(?!nvidia-smi|nvcc|g\+\+|gcc|\S{0,80}nvcc|ninja)[^']{1,200})'"
        ),
        weight=36,
        says="A file is not there: {file}",
        sample="FileNotFoundError: [Errno 2] No such file or directory: 'data/train.json'",
        other="FileNotFoundError: [Errno 2] No such file or directory: 'nvidia-smi'",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="syntax",
        literal="syntaxerror",
        pattern=r"SyntaxError: .{1,80}",
        weight=40,
        says="The program has a syntax error",
        sample="SyntaxError: invalid syntax",
        other="syntax",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="port-web",
        literal="cannot find empty port",
        pattern=r"cannot find empty port in range",
        weight=40,
        says="A web server finds no free port",
        sample="OSError: Cannot find empty port in range: 7860-7860.",
        other="port",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="open-files",
        literal="too many open files",
        pattern=r"too many open files",
        weight=74,
        says="The limit on open files is too low",
        sample=(
            "RuntimeError: unable to open shared memory object </torch_1> Too many open files (24)"
        ),
        other="many files",
        cures=_RAISE_OPEN_FILES,
    ),
    Signature(
        name="received-zero",
        literal="received 0 items of ancdata",
        pattern=r"received 0 items of ancdata",
        weight=74,
        says="The limit on open files is too low",
        sample="RuntimeError: received 0 items of ancdata",
        other="ancdata",
        cures=_RAISE_OPEN_FILES,
    ),
    Signature(
        name="numpy-removed",
        literal="module 'numpy' has no attribute",
        pattern=(
            r"module 'numpy' has no attribute '(?:bool|int|float|object|"
            r"typeDict|str|long)'"
        ),
        weight=56,
        says="The program needs an older NumPy",
        sample="AttributeError: module 'numpy' has no attribute 'bool'",
        other="numpy",
    ),
    Signature(
        name="package-versions",
        literal="is used but incompatible. please install",
        pattern=r"\w{2,20}==\S{1,40} is used but incompatible\. Please install \w{2,20}[<>=]",
        weight=84,
        says="The program needs another release of a package",
        sample=(
            "AssertionError: MMCV==1.4.0 is used but incompatible. Please install "
            "mmcv>=2.0.0rc4, <2.2.0."
        ),
        other="it is used but incompatible. Please install another",
    ),
    Signature(
        name="disk-quota",
        literal="disk quota exceeded",
        pattern=r"disk quota exceeded",
        weight=60,
        says="The disk quota is used up",
        sample="OSError: [Errno 122] Disk quota exceeded",
        other="quota",
    ),
)
