"""Texts that point to numpy-abi-mismatch."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="numpy-abi-mismatch",
    zh="NumPy 版本与 torch 或扩展不兼容（NumPy 2 与 NumPy 1）",
    signatures=(
        Signature(
            name="numpy-1x",
            literal="compiled using numpy 1.x",
            pattern=r"compiled using NumPy 1\.x cannot be run in",
            weight=94,
            says="A module built for NumPy 1 runs with NumPy 2",
            sample="A module that was compiled using NumPy 1.x cannot be run in",
            other="compiled using NumPy 2",
            stands=True,
        ),
        Signature(
            name="array-api",
            literal="_array_api not found",
            pattern=r"_ARRAY_API not found",
            weight=88,
            says="A module built for NumPy 1 runs with NumPy 2",
            sample="AttributeError: _ARRAY_API not found",
            other="_ARRAY_API found",
            stands=True,
        ),
        Signature(
            name="not-available",
            literal="numpy is not available",
            pattern=r"numpy is not available",
            weight=86,
            says="torch cannot use the NumPy that is installed",
            sample="RuntimeError: Numpy is not available",
            other="numpy is available",
            stands=True,
        ),
        Signature(
            name="failed-init",
            literal="failed to initialize numpy",
            pattern=r"failed to initialize numpy(?!: No module named)",
            weight=84,
            says="torch cannot use the NumPy that is installed",
            sample=(
                "UserWarning: Failed to initialize NumPy: numpy.core.multiarray failed to import"
            ),
            other="UserWarning: Failed to initialize NumPy: No module named 'numpy'",
        ),
        Signature(
            name="dtype-size",
            literal="numpy.dtype size changed",
            pattern=r"numpy\.dtype size changed",
            weight=84,
            says="A module was built for another NumPy",
            sample=(
                "ValueError: numpy.dtype size changed, may indicate binary "
                "incompatibility. Expected 96 from C header, got 88 from PyObject"
            ),
            other="numpy.dtype size",
        ),
        Signature(
            name="multiarray",
            literal="multiarray failed to import",
            pattern=r"numpy\.core\.multiarray failed to import",
            weight=76,
            says="A module was built for another NumPy",
            sample="ImportError: numpy.core.multiarray failed to import",
            other="multiarray imported",
        ),
        Signature(
            name="api-version",
            literal="module compiled against",
            pattern=r"module (?:was )?compiled against (?:NumPy C-)?(?:ABI|API) version",
            weight=84,
            says="A module was built for another NumPy",
            sample=(
                "RuntimeError: module compiled against API version 0x10 but "
                "this version of numpy is 0xf"
            ),
            other="module compiled",
        ),
        Signature(
            name="words",
            literal="numpy",
            pattern=(
                r"numpy ?(?:==|version|>=)? ?2(?:\.\d)?.{0,80}(?:incompatib|"
                r"not compatible|break|crash|downgrad|error)|downgrad\w{0,3}.{0,30}numpy|"
                r"numpy ?<\s?2"
            ),
            weight=70,
            says="NumPy 2 with modules built for NumPy 1",
            sample="downgrading numpy to 1.26 fixes it",
            other="numpy 2",
            beside=("torch",),
        ),
    ),
    cures=(
        Cure(
            text="Take NumPy 1 for a torch built for it, or a newer torch.",
            zh="torch 是为 NumPy 1 编译的，请降级 NumPy，或升级 torch。",
            commands=("pip install 'numpy<2'",),
        ),
    ),
)
