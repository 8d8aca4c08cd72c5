"""Texts that point to extension-source-too-old."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="extension-source-too-old",
    zh="扩展的源码需要更旧的 torch",
    signatures=(
        Signature(
            name="thc-header",
            literal="thc/",
            pattern=(
                r"""THC/THC\w{0,30}\.(?:h|cuh)['\"`]?:? ?(?:no such file|没有那个文件|"""
                r"file not found|cannot open|is missing|is gone|not found)|"
                r"(?:fatal error|cannot open).{0,60}THC/THC"
            ),
            weight=94,
            says=(
                "The extension's source needs an older torch: the THC headers are gone since 1.11"
            ),
            sample="fatal error: THC/THC.h: No such file or directory",
            other="#include <THC/THC.h>",
            stands=True,
        ),
        Signature(
            name="th-header",
            literal="th/",
            pattern=r"""\bTH/TH\w{0,30}\.h['\"]?: (?:no such file|没有那个文件)""",
            weight=90,
            says="The extension's source needs an older torch: the TH headers are gone",
            sample="fatal error: TH/TH.h: No such file or directory",
            other="#include <TH/TH.h>",
            stands=True,
        ),
        Signature(
            name="at-check",
            literal="at_check",
            pattern=(
                r"""AT_CHECK['\"’]? (?:was not declared|is undefined)|(?:identifier|"""
                r"""use of undeclared identifier|‘)[ '\"]{0,2}AT_CHECK"""
            ),
            weight=93,
            says="The extension's source needs an older torch: AT_CHECK is gone since 1.5",
            sample="error: 'AT_CHECK' was not declared in this scope",
            other="TORCH_CHECK",
            stands=True,
        ),
        Signature(
            name="ffi",
            literal="torch.utils.ffi",
            pattern=r"torch\.utils\.ffi is deprecated|No module named 'torch\.utils\.ffi'",
            weight=94,
            says="The extension's source needs torch 0.4: torch.utils.ffi is gone",
            sample=(
                "ImportError: torch.utils.ffi is deprecated. Please use cpp extensions instead."
            ),
            other="torch.utils.data",
            stands=True,
        ),
        Signature(
            name="deprecated-type",
            literal="deprecatedtypeproperties",
            pattern=r"(?:no suitable conversion|cannot convert).{0,60}DeprecatedTypeProperties",
            weight=92,
            says="The extension's source needs an older torch",
            sample=(
                'error: no suitable conversion function from "const at::DeprecatedTypePropertie'
                's" to "c10::ScalarType" exists'
            ),
            other="DeprecatedTypeProperties",
            stands=True,
        ),
        Signature(
            name="thc-name",
            literal="thc",
            pattern=(
                r"""['\"‘’`](?:struct )?THC\w{1,40}['\"‘’`]{0,2} (?:was not declared|"""
                r"is undefined|"
                r"has not been declared|does not name a type|未声明|在此作用域中尚未声明)"
                r"|undeclared identifier ['\"‘]THC\w{1,40}"
            ),
            weight=86,
            says="The extension's source needs an older torch: the THC functions are gone",
            sample='error: identifier "THCudaCheck" is undefined',
            other="THCudaCheck FAIL file",
            stands=True,
        ),
        Signature(
            name="six",
            literal="torch._six",
            pattern=r"""no module named ['\"]?torch\._six""",
            weight=88,
            says="The program needs an older torch: torch._six is gone since 2.0",
            sample="ModuleNotFoundError: No module named 'torch._six'",
            other="import six",
            stands=True,
        ),
        Signature(
            name="member",
            literal="has no member",
            pattern=r"(?:class|namespace) \"?at::\w{1,40}\"? has no member",
            weight=74,
            says="The extension's source needs another torch",
            sample='error: class "at::Tensor" has no member "type_dispatch"',
            other="has no member",
        ),
        Signature(
            name="thc-header-words",
            literal="thc.h",
            pattern=r"\bTHC\.h['\"`]{0,2} ?: {0,2}(?:no such file|file not found|没有那个文件)",
            weight=90,
            says="The extension's source needs an older torch: the THC headers are gone since 1.11",
            sample="THC.h: No such file or directory",
            other="#include <THC.h>",
            stands=True,
        ),
        Signature(
            name="six-name",
            literal="from 'torch._six'",
            pattern=r"cannot import name '\w{1,40}' from 'torch\._six'",
            weight=88,
            says="The program needs an older torch: torch._six lost this name",
            sample="ImportError: cannot import name 'container_abcs' from 'torch._six'",
            other="import it from 'torch._six'",
            stands=True,
        ),
        Signature(
            name="old-standard",
            literal="c++17 or later compatible compiler is required",
            pattern=r"C\+\+17 or later compatible compiler is required to use (?:ATen|PyTorch)",
            weight=88,
            says="The extension asks the compiler for an older C++ than this torch needs",
            sample="#error C++17 or later compatible compiler is required to use ATen.",
            other="a C++17 compiler is required",
            beside=("-std=c++14|-std=c++11",),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Take a newer release or a maintained fork of the extension, "
                "or a torch of its time."
            ),
            zh="使用该扩展的新版本或维护中的分支，或安装它当时支持的 torch。",
        ),
    ),
)
