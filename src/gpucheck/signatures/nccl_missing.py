"""Texts that point to nccl-missing."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="nccl-missing",
    zh="这个 PyTorch 没有编译 NCCL",
    signatures=(
        Signature(
            name="no-nccl",
            literal="have nccl built in",
            pattern=(
                r"distributed package doesn't have NCCL(?: |\w)built in|doesn't "
                r"have NCCL built in"
            ),
            weight=94,
            says="This PyTorch is built without NCCL (Windows, macOS, Jetson, a CPU build)",
            sample="RuntimeError: Distributed package doesn't have NCCL built in",
            other="the package has NCCL built in",
            stands=True,
        ),
        Signature(
            name="not-compiled",
            literal="not compiled with nccl",
            pattern=r"not compiled with NCCL support",
            weight=88,
            says="This PyTorch is built without NCCL",
            sample="UserWarning: PyTorch is not compiled with NCCL support",
            other="compiled with NCCL support",
            stands=True,
        ),
        Signature(
            name="no-nccl-attr",
            literal="processgroupnccl",
            pattern=r"(?:cannot import name|no attribute) '(?:ProcessGroupNCCL|NCCL\w{0,20})'",
            weight=86,
            says="This PyTorch is built without NCCL",
            sample="ImportError: cannot import name 'ProcessGroupNCCL' from 'torch.distributed'",
            other="ProcessGroupNCCL.cpp",
        ),
        Signature(
            name="libnccl",
            literal="libnccl.so",
            pattern=r"""libnccl\.so(?:\.\d)?['\"]?: cannot open shared object""",
            weight=84,
            says="libnccl is not found by the loader",
            sample=(
                "ImportError: libnccl.so.2: cannot open shared object file: "
                "No such file or directory"
            ),
            other="libnccl.so.2 is loaded",
        ),
    ),
    cures=(
        Cure(
            text="Use the backend gloo there, or a Linux CUDA build of PyTorch.",
            zh="在该平台使用 gloo 后端，或使用 Linux 的 CUDA 版 PyTorch。",
        ),
    ),
)
