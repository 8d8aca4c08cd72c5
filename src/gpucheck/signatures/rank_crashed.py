"""Texts that point to rank-crashed."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="rank-crashed",
    zh="有 rank 崩溃了",
    signatures=(
        Signature(
            name="segv",
            literal="sigsegv",
            pattern=r"SIGSEGV",
            weight=48,
            says="A rank died of a segmentation fault",
            sample="traceback : Signal 11 (SIGSEGV) received by PID 4242",
            other="SIGTERM",
        ),
        Signature(
            name="exit-11",
            literal="-11",
            pattern=r"exit ?code\s{0,3}: ?-11\b",
            weight=48,
            says="A rank died of a segmentation fault",
            sample="exitcode  : -11 (pid: 4242)",
            other="exit code 11",
            beside=("code",),
        ),
        Signature(
            name="abort",
            literal="-6",
            pattern=r"exit ?code\s{0,3}: ?-6\b",
            weight=40,
            says="A rank aborted",
            sample="exitcode  : -6 (pid: 4242)",
            other="exit code 6",
            beside=("code",),
        ),
        Signature(
            name="segfault",
            literal="segmentation fault",
            pattern=r"(?<!killed by signal: )Segmentation fault",
            weight=36,
            says="The process died of a segmentation fault",
            sample="Segmentation fault (core dumped)",
            other="segmentation model",
        ),
        Signature(
            name="core",
            literal="core dumped",
            pattern=(
                r"(?:Aborted|Segmentation fault|Floating point exception|Illegal "
                r"instruction) \(core dumped\)"
            ),
            weight=38,
            says="The process crashed",
            sample="Aborted (core dumped)",
            other="core dumped files",
            unless=("illegal instruction",),
        ),
    ),
    cures=(
        Cure(
            text="Run the rank that failed first alone, with Python's fault handler.",
            zh="单独运行最先失败的 rank，并打开 faulthandler。",
            commands=(
                "PYTHONFAULTHANDLER=1 python SCRIPT",
                "sudo dmesg | tail",
            ),
        ),
    ),
)
