"""Texts that point to nccl-version-mismatch."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="nccl-version-mismatch",
    zh="各 rank 或各库的 NCCL 版本不一致",
    signatures=(
        Signature(
            name="mismatched",
            literal="mismatched nccl version",
            pattern=r"mismatched NCCL version detected",
            weight=95,
            says="Ranks run different NCCL versions",
            sample="NCCL WARN Mismatched NCCL version detected : ncclVersion 21304 rank 0 hash",
            other="the NCCL version is 2.18",
            stands=True,
        ),
        Signature(
            name="symbol",
            literal="undefined symbol",
            pattern=r"undefined symbol:? nccl\w{1,60}",
            weight=84,
            says="torch got an older NCCL library than it was built for",
            sample="ImportError: libtorch_cuda.so: undefined symbol: ncclCommRegister",
            other="undefined symbol: cublasLt",
            cures=(
                Cure(
                    text=(
                        "Another NCCL has overwritten the one that this torch needs, or is found "
                        "before it. Keep other NCCLs out of LD_LIBRARY_PATH; if that was not it, "
                        "remove every NCCL wheel and let pip bring the one that torch pins."
                    ),
                    zh=(
                        "torch 需要的 NCCL 被另一个版本覆盖，或另一个版本先被找到。先从 "
                        "LD_LIBRARY_PATH 中去掉其他 NCCL；若仍不行，卸载所有 NCCL 包，"
                        "由 pip 重新安装 torch 指定的版本。"
                    ),
                    commands=(
                        "unset LD_LIBRARY_PATH",
                        "pip uninstall -y nvidia-nccl-cu11 nvidia-nccl-cu12 nvidia-nccl-cu13",
                        "pip install torch",
                    ),
                ),
            ),
        ),
        Signature(
            name="family",
            literal="connecting to address with family",
            pattern=r"ncclSocketInit: connecting to address with family \d{1,5} is neither",
            weight=80,
            says=(
                "Ranks run different NCCL versions: they do not understand one another's addresses"
            ),
            sample=(
                "ncclSocketInit: connecting to address with family 0 is neither "
                "AF_INET(2) nor AF_INET6(10)"
            ),
            other="address family",
        ),
        Signature(
            name="invalid-id",
            literal="commhash",
            pattern=r"different NCCL versions|NCCL version.{0,40}(?:differ|mismatch)",
            weight=70,
            says="Ranks run different NCCL versions",
            sample="the ranks have different NCCL versions commhash",
            other="NCCL version 2.18.5",
        ),
        Signature(
            name="version-differ",
            literal="nccl version",
            pattern=(
                r"NCCL version.{0,60}(?:differs?|mismatch|different|does not "
                r"match|doesn't match)|(?:differs?|mismatch|different).{0,30} "
                r"NCCL version"
            ),
            weight=74,
            says="Ranks or libraries have different NCCL versions",
            sample="NCCL version mismatch between the nodes",
            other="NCCL version 2.18.5+cuda12.1",
        ),
        Signature(
            name="two-versions",
            literal="nccl version",
            pattern=r"NCCL version (?P<version>\d\.\d{1,2}\.\d{1,2})\+cuda",
            weight=82,
            says="Ranks run different NCCL versions",
            sample="NCCL version 2.14.3+cuda11.7",
            other="NCCL version unknown",
            distinct="version",
        ),
        Signature(
            name="bootstrap-versions",
            literal="bootstrap : mismatched",
            pattern=r"NCCL WARN Bootstrap : mismatched versions?",
            weight=90,
            says="The ranks run different NCCL versions",
            sample="NCCL WARN Bootstrap : mismatched versions",
            other="Bootstrap : Using eth0",
        ),
    ),
    cures=(
        Cure(
            text="The same torch on every node, and no other NCCL in LD_LIBRARY_PATH.",
            zh="所有节点使用同一版本的 torch，LD_LIBRARY_PATH 中不要有其他 NCCL。",
            commands=(
                'python -c "import torch; print(torch.cuda.nccl.version())"',
                "unset LD_LIBRARY_PATH",
            ),
        ),
    ),
)
