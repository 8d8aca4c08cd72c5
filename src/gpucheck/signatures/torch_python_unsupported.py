"""Texts that point to torch-python-unsupported."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="torch-python-unsupported",
    zh="这个 Python 版本或平台没有对应的 torch 安装包",
    signatures=(
        Signature(
            name="pip",
            literal="requirement torch",
            pattern=(
                r"could not find a version that satisfies the requirement (?:torch|"
                r"pytorch)(?![\w-])"
            ),
            weight=86,
            says="No wheel of this torch for this Python, platform or index",
            sample=(
                "ERROR: Could not find a version that satisfies the requirement "
                "torch==1.12.1 (from versions: 2.2.0, 2.2.1)"
            ),
            other="could not find a version that satisfies the requirement torchfoo",
        ),
        Signature(
            name="pip-match",
            literal="no matching distribution found for torch",
            pattern=r"no matching distribution found for torch(?![\w-])",
            weight=86,
            says="No wheel of this torch for this Python, platform or index",
            sample="ERROR: No matching distribution found for torch==1.9.1+cu111",
            other="no matching distribution found for torchfoo",
        ),
        Signature(
            name="pip-companion",
            literal="no matching distribution found for torch",
            pattern=(
                r"no matching distribution found for (?:torchvision|torchaudio|"
                r"torchtext|pytorch)"
            ),
            weight=78,
            says="No wheel of this package for this Python, platform or index",
            sample="ERROR: No matching distribution found for torchvision==0.10.1+cu111",
            other="no matching distribution found for torchfoo",
        ),
        Signature(
            name="poetry",
            literal="unable to find installation candidates for torch",
            pattern=r"unable to find installation candidates for torch",
            weight=88,
            says="Poetry finds no wheel of this torch for this Python or platform",
            sample="Unable to find installation candidates for torch (1.13.1)",
            other="unable to find installation candidates for numpy",
        ),
        Signature(
            name="platform-wheel",
            literal="is not a supported wheel on this platform",
            pattern=r"torch\S{0,120} is not a supported wheel on this platform",
            weight=88,
            says="This torch wheel is for another Python or platform",
            sample=(
                "ERROR: torch-1.10.0+cu113-cp39-cp39-linux_x86_64.whl is not "
                "a supported wheel on this platform."
            ),
            other="foo.whl is not a supported wheel on this platform",
        ),
        Signature(
            name="uv",
            literal="wheel",
            pattern=(
                r"torch.{0,160}(?:has no wheels with a matching|(?:doesn't|"
                r"does not) have a source distribution or wheel for the current "
                r"platform|no wheels are available for|only has wheels for)"
            ),
            weight=88,
            says="uv finds no wheel of this torch for this Python or platform",
            sample=(
                "Because torch==1.13.1 has no wheels with a matching Python ABI tag (e.g., `cp312`)"
            ),
            other="torch has wheels",
        ),
        Signature(
            name="uv-nameless",
            literal="@ registry+",
            pattern=(
                r"(?:torch\S{0,60} |[`'\"])@ registry\+\S{1,120} can.t be installed because it "
                r"doesn.t have a source distribution or wheel for the current platform"
            ),
            weight=80,
            says="uv finds no wheel of this torch for this Python or platform",
            sample=(
                "error: Distribution `torch==2.4.1 @ registry+https://example.org/simple` can't be "
                "installed because it doesn't have a source distribution or wheel for the current "
                "platform"
            ),
            other="Distribution `numpy==1.0 @ registry+https://example.org/simple` is installed",
            beside=("add torch|install torch|torch==|torch>=|torch @",),
        ),
        Signature(
            name="uv-debug",
            literal="no compatible version found for: torch",
            pattern=r"No compatible version found for: torch(?![\w-])",
            weight=84,
            says="uv finds no wheel of this torch for this Python, platform or index",
            sample="DEBUG No compatible version found for: torch",
            other="No compatible version found for: torchfoo",
        ),
        Signature(
            name="solvers",
            literal="torch",
            pattern=(
                r"\bthere (?:is|are) no versions? of torch(?![\w-])"
                r"|\btorch(?:==\S{1,30}| \(\S{1,30}\)) which doesn.t match any versions"
                r"|\bNo candidates? (?:is|are|were|was)? ?found for [`'\"]?(?:py)?torch(?![\w-])"
                r"|\bnothing provides (?:requested )?pytorch\b"
                r"|\btorch(?:==\S{1,30})? has no usable wheels"
            ),
            weight=80,
            says="No wheel of this torch for this Python, platform or index",
            sample="Because there is no version of torch==2.3.0 and you require torch==2.3.0",
            other="there is no version of torchfoo",
            beside=(
                (
                    "no version of torch|no versions of torch|match any versions|no candidate|"
                    "nothing provides|no usable wheels"
                ),
            ),
        ),
        Signature(
            name="conda",
            literal="packagesnotfounderror",
            pattern=r"PackagesNotFoundError",
            weight=80,
            says="conda finds no such PyTorch package for this platform and Python",
            sample=(
                "PackagesNotFoundError: The following packages are not available "
                "from current channels:"
            ),
            other="PackagesFound",
            beside=("pytorch|torchvision|cudatoolkit",),
        ),
        Signature(
            name="conda-unsat",
            literal="unsatisfiableerror",
            pattern=r"UnsatisfiableError|LibMambaUnsatisfiableError",
            weight=76,
            says="conda cannot bring this PyTorch and this Python together",
            sample=(
                "UnsatisfiableError: The following specifications were found "
                "to be incompatible with the existing python installation"
            ),
            other="satisfiable",
            beside=("pytorch",),
        ),
        Signature(
            name="requires-python",
            literal="requires",
            pattern=r"requires (?:a different python|python ?[<>=!])",
            weight=74,
            says="This package needs another Python",
            sample="ERROR: Package 'torch' requires a different Python: 3.6.9 not in '>=3.7.0'",
            other="requires numpy",
            beside=("torch",),
        ),
        Signature(
            name="ignored",
            literal="requires-python",
            pattern=(
                r"ignored the following (?:versions|yanked).{0,80}(?:requires?[- "
                r"]python|different python)"
            ),
            weight=60,
            says="pip left out versions that need another Python",
            sample=(
                "ERROR: Ignored the following versions that require a different "
                "python version: 1.6.2 Requires-Python >=3.6,<3.8"
            ),
            other="Requires-Python",
            beside=("torch",),
        ),
        Signature(
            name="compile-311",
            literal="not supported on",
            pattern=r"(?:dynamo|torch\.compile) (?:is )?not supported on (?:python|windows)",
            weight=84,
            says="torch.compile does not support this Python or platform yet",
            sample="RuntimeError: Dynamo is not supported on Python 3.12+",
            other="python is supported",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Use a Python for which this torch has wheels, or a torch "
                "that has wheels for your Python."
            ),
            zh="使用该 torch 支持的 Python 版本，或换一个支持你 Python 的 torch。",
            commands=(
                "python -m pip --version",
                "python -m pip index versions torch",
            ),
        ),
    ),
)
