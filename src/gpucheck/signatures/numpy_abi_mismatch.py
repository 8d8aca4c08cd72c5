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
        Signature(
            name="infer-dtype",
            literal="could not infer dtype of numpy.",
            pattern=r"could not infer dtype of numpy\.(?:float|u?int|bool|complex|half|double)",
            weight=84,
            says="torch does not know the NumPy that is installed: it was built for another",
            sample="RuntimeError: Could not infer dtype of numpy.float32",
            other="RuntimeError: Could not infer dtype of numpy.datetime64",
            stands=True,
        ),
        Signature(
            name="np-ndarray",
            literal="expected np.ndarray (got numpy.ndarray)",
            pattern=r"expected np\.ndarray \(got numpy\.ndarray\)",
            weight=86,
            says="torch does not know the NumPy that is installed: it was built for another",
            sample="TypeError: expected np.ndarray (got numpy.ndarray)",
            other="TypeError: expected np.ndarray (got list)",
            stands=True,
        ),
        Signature(
            name="convert-type",
            literal="can't convert np.ndarray of type numpy.",
            pattern=(
                r"can't convert np\.ndarray of type numpy\."
                r"(?:float(?:16|32|64)|u?int(?:8|16|32|64)|bool_?)\b"
            ),
            weight=72,
            says="torch does not know a type of the NumPy that is installed",
            sample="TypeError: can't convert np.ndarray of type numpy.float32.",
            other="TypeError: can't convert np.ndarray of type numpy.object_.",
            unless=("numpy.uint16", "numpy.uint32", "numpy.uint64"),  # once no types of torch
        ),
        Signature(
            name="umath",
            literal="umath failed to import",
            pattern=r"numpy\.(?:_?core\.)?umath failed to import",
            weight=80,
            says="A module was built for another NumPy",
            sample="ImportError: numpy.core.umath failed to import",
            other="umath imported",
        ),
        Signature(
            name="ndarray-size",
            literal="size changed, may indicate binary incompatibility",
            pattern=r"numpy\.(?:ndarray|ufunc) size changed, may indicate binary incompatibility",
            weight=84,
            says="A module was built for another NumPy",
            sample=(
                "ValueError: numpy.ndarray size changed, may indicate binary incompatibility. "
                "Expected 96 from C header, got 80 from PyObject"
            ),
            other="pandas size changed, may indicate binary incompatibility",
        ),
        Signature(
            name="removed-name",
            literal="removed in the numpy 2.0 release",
            pattern=r"`np\.\w{2,30}` was removed in the NumPy 2\.0 release",
            weight=76,
            says="A program that needs NumPy 1 runs with NumPy 2",
            sample="AttributeError: `np.float_` was removed in the NumPy 2.0 release.",
            other="what was removed in the NumPy 2.0 release is listed",
        ),
        Signature(
            name="c-api-version",
            literal="compiled against numpy c-api version",
            pattern=r"compiled against NumPy C-API version",
            weight=84,
            says="A module was built for another NumPy",
            sample=(
                "RuntimeError: module was compiled against NumPy C-API version 0x10 (NumPy 1.23) "
                "but the running NumPy has C-API version 0xf."
            ),
            other="compiled against NumPy",
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
