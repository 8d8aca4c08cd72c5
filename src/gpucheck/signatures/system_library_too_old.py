"""Texts that point to system-library-too-old."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="system-library-too-old",
    zh="系统的 glibc/libstdc++ 太旧",
    signatures=(
        Signature(
            name="symbol-version",
            literal="not found",
            pattern=(
                r"version `?'?(?P<symbol>(?:GLIBC|GLIBCXX|CXXABI|GCC)_[\d.]{1,10})'? "
                r"not found"
            ),
            weight=93,
            says="The system's C or C++ library lacks {symbol}: it is too old",
            sample=(
                "ImportError: /lib64/libc.so.6: version `GLIBC_2.27' not found (required by foo.so)"
            ),
            other="version 2 not found",
            stands=True,
        ),
        Signature(
            name="manylinux",
            literal="manylinux",
            pattern=r"manylinux.{0,80}(?:not a supported|not compatible|too old)",
            weight=74,
            says="The wheel needs a newer glibc",
            sample="torch-2.6.0-manylinux_2_28_x86_64.whl is not a supported wheel",
            other="manylinux wheels",
        ),
    ),
    cures=(
        Cure(
            text="Use a newer distribution or a container; for libstdc++ conda's own is enough.",
            zh="使用更新的发行版或容器；libstdc++ 可以用 conda 自带的。",
            commands=(
                "ldd --version",
                "conda install -c conda-forge libstdcxx-ng",
            ),
        ),
    ),
)
