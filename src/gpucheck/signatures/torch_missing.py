"""Texts that point to torch-missing."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="torch-missing",
    zh="运行程序的 Python 里没有安装 PyTorch",
    signatures=(
        Signature(
            name="import",
            literal="no module named",
            pattern=r"""no module named ['\"]?torch['\"]?(?![\w.'\"])""",
            weight=80,
            says="The interpreter that ran has no PyTorch",
            sample="ModuleNotFoundError: No module named 'torch'",
            other="No module named 'torchvision'",
            unless=(
                "failed to build",
                "getting requirements to build wheel",
                "get_requires_for_build_wheel",
                "build backend returned an error",
                "is not a package",
            ),
        ),
        Signature(
            name="build",
            literal="no module named",
            pattern=r"""no module named ['\"]?torch['\"]?(?![\w.'\"])""",
            weight=86,
            says="The build does not see PyTorch: pip builds in an isolated environment",
            sample="ModuleNotFoundError: No module named 'torch'",
            other="No module named 'numpy'",
            beside=(
                (
                    "failed to build|getting requirements to build wheel|"
                    "subprocess-exited-with-error|error: metadata|pyproject_hooks|pep517|"
                    "get_requires_for_build_wheel|prepare_metadata_for_build|"
                    "build backend returned an error"
                ),
            ),
            cures=(
                Cure(
                    text=(
                        "Install torch first, then build without isolation, "
                        "so that the build sees it."
                    ),
                    zh="先安装 torch，再关闭构建隔离进行编译，这样编译时才能看到它。",
                    commands=(
                        "pip install torch",
                        "pip install --no-build-isolation PACKAGE",
                    ),
                ),
            ),
        ),
        Signature(
            name="pip-show",
            literal="package(s) not found: torch",
            pattern=r"package\(s\) not found: torch\b",
            weight=74,
            says="pip finds no torch in this environment",
            sample="WARNING: Package(s) not found: torch",
            other="Package(s) not found: torchvision",
        ),
    ),
    cures=(
        Cure(
            text="Install PyTorch with the very interpreter that runs the program.",
            zh="用运行程序的同一个解释器安装 PyTorch。",
            commands=(
                "python -m pip install torch",
                'python -c "import sys; print(sys.executable)"',
            ),
        ),
        Cure(
            text=(
                "Where pip builds a package that needs torch: install torch "
                "first, then without build isolation."
            ),
            zh="如果是编译依赖 torch 的包：先装 torch，再关闭构建隔离。",
            commands=("pip install --no-build-isolation PACKAGE",),
        ),
    ),
)
