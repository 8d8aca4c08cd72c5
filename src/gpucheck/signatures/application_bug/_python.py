"""Texts that point to application-bug: Python: imports, workers, arguments."""

from gpucheck.signatures.base import Cure, Signature

_IMPORT_TORCH_FIRST = (
    Cure(
        text=("Import torch before the extension: its libraries are found through torch."),
        zh="在导入该扩展之前先 import torch：它的库要通过 torch 才能找到。",
    ),
)

SIGNATURES = (
    Signature(
        name="fork",
        literal="re-initialize cuda in forked subprocess",
        pattern=r"cannot re-initialize CUDA in forked subprocess",
        weight=90,
        says="The program uses CUDA before it forks: it must start its workers with spawn",
        sample=(
            "RuntimeError: Cannot re-initialize CUDA in forked subprocess. "
            "To use CUDA with multiprocessing, you must use the 'spawn' "
            "start method"
        ),
        other="forked subprocess",
        stands=True,
        cures=(
            Cure(
                text=(
                    "Start the workers with spawn: torch.multiprocessing.set_start_method('"
                    "spawn'), or do not use CUDA before the fork."
                ),
                zh=(
                    "用 spawn 启动子进程：torch.multiprocessing.set_start_method('spawn')，"
                    "或在 fork 之前不要使用 CUDA。"
                ),
            ),
        ),
    ),
    Signature(
        name="bootstrapping",
        literal="finished its bootstrapping phase",
        pattern=(
            r"before the\s{0,20}current process has finished its bootstrapping "
            r"phase|finished its bootstrapping phase"
        ),
        weight=88,
        says='The program starts workers without `if __name__ == "__main__"`',
        sample="current process has finished its bootstrapping phase.",
        other="bootstrapping",
        stands=True,
        cures=(
            Cure(
                text="Put the code that starts the workers under if __name__ == '__main__'.",
                zh="把启动子进程的代码放到 if __name__ == '__main__' 之下。",
            ),
        ),
    ),
    Signature(
        name="keyword",
        literal="unexpected keyword argument",
        pattern=r"TypeError: \S{1,80}\(\) got an unexpected keyword argument",
        weight=70,
        says="The program calls a function with an argument that it does not take",
        sample="TypeError: foo() got an unexpected keyword argument 'bar'",
        other="keyword argument",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="import-order",
        literal="cannot open shared object",
        pattern=r"lib(?:c10|torch|torch_cpu|torch_python)\.so: cannot open shared object",
        weight=90,
        says="The extension was imported before torch, whose libraries it needs",
        sample=(
            "ImportError: libc10.so: cannot open shared object file: No such file or directory"
        ),
        other="libfoo.so: cannot open shared object",
        beside=("fact:cuda_available=true",),
        cures=_IMPORT_TORCH_FIRST,
    ),
    Signature(
        name="import-torch-first",
        literal="undefined symbol: thp",
        pattern=r"undefined symbol: THP\w{1,60}",
        weight=89,
        says="The extension was imported before torch, whose libraries it needs",
        sample=(
            "ImportError: lltm_cpp.cpython-36m-x86_64-linux-gnu.so: undefined "
            "symbol: THPVariableClass"
        ),
        other="undefined symbol: foo",
        cures=_IMPORT_TORCH_FIRST,
    ),
    Signature(
        name="unpickle-lambda",
        literal="can't pickle",
        pattern=r"(?:can't|cannot) pickle (?:local object|\S{0,30}lambda|<function)",
        weight=70,
        says="The program hands its workers something that cannot be pickled",
        sample="AttributeError: Can't pickle local object 'main.<locals>.<lambda>'",
        other="pickle",
        unless=("fact:cuda_available=true",),
        stands=True,
    ),
    Signature(
        name="builtin-attribute",
        literal="object has no attribute",
        pattern=(
            r"Error: '(?:str|list|tuple|dict|set|int|float|bool|bytes|function|Namespace|"
            r"numpy\.(?:ndarray|float32|float64|int64)|builtin_function_or_method|DataLoader|"
            r"DataParallel|DistributedDataParallel|Image|generator)' object has no attribute"
        ),
        weight=58,
        says="The program uses an object of another kind than it expects",
        sample="AttributeError: 'list' object has no attribute 'cuda'",
        other="AttributeError: '_OpNamespace' '_C' object has no attribute 'silu'",
        beside=("torch|cuda|gpu",),
        stands=True,
    ),
    Signature(
        name="older-torch",
        literal="module 'torch' has no attribute",
        pattern=(
            r"module 'torch' has no attribute '(?-i:device|tensor|float(?:16|32|64|8_\w{1,12})|"
            r"bool|u?int(?:8|16|32|64)|bfloat16|compile|inference_mode|autocast|amp|fx|func|"
            r"set_float32_matmul_precision|get_default_device|set_default_device|xpu|mps|"
            r"concat|permute|nan_to_num|Generator|channels_last|fft|special|linalg|vmap|"
            r"set_grad_enabled|no_grad|stft|searchsorted|frombuffer|library)'"
        ),
        weight=62,
        says="The program wants a newer torch than the one installed",
        sample="AttributeError: module 'torch' has no attribute 'inference_mode'",
        other="module 'torch' has no attribute 'Tensor'",
        unless=("(unknown location)", "partially initialized"),
        stands=True,
        cures=(
            Cure(
                text=(
                    "Install a torch as new as the program asks for (its requirements say which)."
                ),
                zh="按该程序的要求安装更新的 torch 版本。",
                commands=('python -c "import torch; print(torch.__version__, torch.__file__)"',),
            ),
        ),
    ),
)
