"""Texts that point to system-library-too-old."""

from gpucheck.signatures.base import Cure, Signature, Signs

_LACKS = (
    r"\b(?:not find(?:ing)?|cannot find|can't find|could not find|missing|lacks?|without|needs?"
    r"|does not have|doesn't have|requires?|no) (?:the )?(?:symbol )?[`'\"]?"
    r"(?:GLIBC|GLIBCXX|CXXABI|GOMP)_\d"
    r"|\b(?:GLIBC|GLIBCXX|CXXABI|GOMP)_\d[\d.]{0,9}[`'\"]{0,2} (?:is |was )?"
    r"(?:not (?:found|defined|available|there)|missing|找不到|未找到)"
)
"""What people write of a version that a program looked for in vain."""

SIGNS = Signs(
    slug="system-library-too-old",
    zh="系统的 glibc/libstdc++ 太旧",
    signatures=(
        Signature(
            name="symbol-version",
            literal="not found",
            pattern=(
                r"version [`'\"‘]?(?P<symbol>(?:GLIBC|GLIBCXX|CXXABI|GCC|GOMP)_[\d.]{1,10})"
                r"[`'\"’]? not found"
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
            pattern=(
                r"manylinux_2_(?:2[4-9]|[3-9]\d).{0,80}not a supported"
                r"|manylinux.{0,80}(?:not compatible|too old)"
            ),
            weight=74,
            says="The wheel needs a newer glibc",
            sample="torch-2.6.0-manylinux_2_28_x86_64.whl is not a supported wheel",
            other="torch-1.0-manylinux2014_x86_64.whl is not a supported wheel",
        ),
        *(
            Signature(
                name=f"{library}-words",
                literal=f"{library}_",
                pattern=_LACKS,
                weight=80,
                says="The system's C or C++ library lacks a version of its symbols: it is too old",
                sample=f"libstdc++.so.6 lacks {library.upper()}_3.4.29",
                other=f"{library.upper()}_3.4.29 is there",
            )
            for library in ("glibc", "glibcxx", "cxxabi", "gomp")
        ),
        Signature(
            name="symbol-link",
            literal="@glibc",
            pattern=r"undefined reference to .{1,120}@GLIBC(?:XX)?_\d",
            weight=84,
            says="The linker finds an older C or C++ library than the binary needs",
            sample="undefined reference to `std::__throw_bad_array_new_length()@GLIBCXX_3.4.29'",
            other="memcpy@GLIBC_2.14",
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
