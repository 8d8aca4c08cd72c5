"""The exception that a text is about, what it is about, and whose code raised it."""

from each import each

from gpucheck.ticket.exceptions import Frame
from gpucheck.ticket.failure import About, Failure, failure_of, innermost
from gpucheck.ticket.intake import read_text
from gpucheck.ticket.judge import triage

INSTALLED = "/venv/lib/python3.11/site-packages"


def traceback(message: str, file: str = f"{INSTALLED}/vllm/engine.py") -> str:
    return (
        "Traceback (most recent call last):\n"
        f'  File "{file}", line 7, in step\n    return inner()\n{message}\n'
    )


def failure(text: str) -> Failure:
    found = failure_of(read_text(text.encode()))
    assert found is not None
    return found


@each(
    ("message", "about"),
    [
        ("KeyError: 'lm_head'", About.PROGRAM),
        ("ValueError: Out of range float values are not JSON compliant", About.PROGRAM),
        ("torch._inductor.exc.InductorError: AttributeError: no attribute 'x'", About.PROGRAM),
        ("triton.compiler.errors.CompilationError: at 8:11: cuda_load", About.PROGRAM),
        ("RuntimeError: CUDA error: unknown error", About.ENVIRONMENT),
        ("torch.OutOfMemoryError: tried to allocate", About.ENVIRONMENT),
        ("ImportError: libfoo.so: cannot open shared object file", About.ENVIRONMENT),
        ("ModuleNotFoundError: No module named 'torch'", About.ENVIRONMENT),
        ("ModuleNotFoundError: No module named 'vllm._C'", About.ENVIRONMENT),
        ("ModuleNotFoundError: No module named 'peft'", About.ELSEWHERE),
        ("ModuleNotFoundError: No module named 'torchaudio'", About.ELSEWHERE),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'x'", About.ELSEWHERE),
        ("requests.exceptions.ConnectionError: Max retries exceeded", About.ELSEWHERE),
        ("RuntimeError: Websocket connection closed", About.PROGRAM),
    ],
)
def test_what_an_exception_is_about(message: str, about: About) -> None:
    assert failure(traceback(message)).about is about


@each(
    "after",
    [
        traceback("RuntimeError: Engine core initialization failed. See root cause above."),
        traceback("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py"),
        traceback("subprocess.CalledProcessError: Command returned non-zero exit status 1."),
        traceback("RuntimeError: Error building extension 'fused_adam'"),
        traceback("asyncio.exceptions.CancelledError: cancelled"),
        traceback("requests.exceptions.ConnectionError: refused"),
    ],
)
def test_who_only_passes_a_failure_on_is_not_it(after: str) -> None:
    first = traceback("KeyError: 'lm_head'")
    assert failure(f"{first}\n{after}").raised.name == "KeyError"
    assert failure(f"{after}\n{first}").raised.name == "KeyError"


def test_a_report_that_fails_is_not_what_the_text_is_about() -> None:
    own = traceback("AttributeError: no __version__", "/tmp/collect_env.py")
    assert failure_of(read_text(own.encode())) is None


@each(
    ("file", "package", "installed", "shown"),
    [
        (f"{INSTALLED}/vllm/v1/engine/core.py", "vllm", True, "vllm/v1/engine/core.py"),
        (r"C:\py\Lib\site-packages\trl\trainer.py", "trl", True, r"trl\trainer.py"),
        ("/src/vllm/vllm/worker/worker.py", "vllm", True, "vllm/worker/worker.py"),
        ("/w/LLaMA-Factory/src/llamafactory/cli.py", "llamafactory", True, "llamafactory/cli.py"),
        ("/x/vllm-0.5.0-py3.10.egg/vllm/api.py", "vllm", True, "vllm/api.py"),
        ("/home/me/secret-project/train.py", "train.py", False, "train.py"),
        ("Cell In[3]", None, False, "Cell In[3]"),
        ("<ipython-input-17-dec9889208dd>", None, False, "<ipython-input-17-dec9889208dd>"),
    ],
)
def test_whose_code_a_file_is(
    file: str, package: str | None, *, installed: bool, shown: str
) -> None:
    found = innermost([Frame(file, 3, "run(self")])
    assert found is not None
    assert (found.package, found.installed, found.file) == (package, installed, shown)
    assert found.function == "run"


def test_pytorch_and_python_are_below_everybody() -> None:
    frames = [
        Frame("/home/me/train.py", 1, "main"),
        Frame(f"{INSTALLED}/torch/nn/modules/module.py", 2, "forward"),
        Frame("/usr/lib/python3.10/json/encoder.py", 3, "iterencode"),
    ]
    found = innermost(frames)
    assert found is not None
    assert found.package == "train.py"
    assert innermost([]) is None


def test_a_build_that_is_only_logged_counts_beside_what_is_missing() -> None:
    logged = "2026-11-02 10:00:00,001 - INFO - PyTorch version: 2.1.0+cpu"
    assert triage(f"{logged}, CUDA not available, using CPU").root_causes == ("torch-cpu-only",)


def test_a_framework_for_any_program_is_named_only_if_there_is_no_other_package() -> None:
    web = Frame(f"{INSTALLED}/starlette/responses.py", 187, "render")
    engine = Frame(f"{INSTALLED}/vllm/entrypoints/api_server.py", 9, "create")
    for frames, package in (([engine, web], "vllm"), ([web], "starlette")):
        found = innermost(frames)
        assert found is not None
        assert found.package == package
