"""Texts in which nothing of the environment fails, and those that complain without a cause."""

from each import each

from gpucheck import triage
from gpucheck.facts.request import Pasted
from gpucheck.output.ticket_text import render
from gpucheck.ticket.ticket_reply import reply

NOTHING_FAILS = (
    "[Feature]: support FP8 for GPUs with compute capability 8.9\n",
    "How do I fine-tune the model on several GPUs? Is there an example for two cards?\n",
    "The new release of vllm is 5 % slower than the one before, on the same GPU and model.\n",
    "请问这个项目支持多卡训练吗？有没有示例？\n",
)
COMPLAINS = (
    "After the update PyTorch does not use my GPU any more, everything runs on the CPU.\n",
    "pip install of torch fails on my laptop and I do not know why.\n",
    "Why is CUDA not detected on this machine?\n",
    "升级之后显卡用不了，训练很慢\n",
    "程序跑到这一行时，就被Killed了\n",
    "why train be killed?\niter 144: time:1.722(sec), total-loss 0.5882\n\n**Killed**\n",
    "训练时占的内存越来越大，最后报错\n",
    "Resource exhausted\nошибка показана на скрине ниже\n",
    "Hi, our training on several machines ends with a message of error 12. Any idea why?\n",
    "Failed to build flash-attn\n\nPython is 3.10.18, and the model is that of the guide\n",
    "gpu-2-5 has lost a GPU\n\nPerhaps the GPU of the training needs a reset or a restart of it\n",
    "My card gets very hot, up to 110 degrees, even when I train no model. What can I do?\n",
    "请教一下，多 GPU 训练失败，提示没装 NVIDIA 的库，但是 windows 上好像没有\n",
    "After loading the checkpoint of the model, it just stoped and the gpus are occupied.\n",
)


@each("text", NOTHING_FAILS)
def test_where_nothing_fails_no_fault_of_the_environment_shows(text: str) -> None:
    report = triage(text)
    assert (report.verdict, report.root_causes, report.owner) == ("healthy", (), "none")
    assert "The text shows no fault of the environment" in render(report)
    assert "Nothing in what you sent shows a fault of the driver, CUDA" in reply(report)


@each("text", COMPLAINS)
def test_who_complains_of_the_environment_is_not_called_healthy(text: str) -> None:
    assert triage(text).verdict != "healthy"


@each(
    "text",
    (
        "I trained your model on my card for days without errors.\nWhich learning rate is best?\n",
        "[Feature]: show which node of a training has failed, and where the model was saved\n",
        "请问这个项目的模型能不能用多张显卡来训练？有没有多卡训练的示例和说明？\n",
    ),
)
def test_failures_that_did_not_happen_are_no_complaint(text: str) -> None:
    assert triage(text).verdict == "healthy"


def test_what_programs_print_of_errors_is_no_complaint_of_a_person() -> None:
    log = "Loading the model\nepoch one\nepoch two\nFailed to open the protocol names file\nsaved\n"
    assert triage(log).snapshot.get(Pasted).complaint is None


def test_who_says_both_that_cuda_is_available_and_that_torch_cannot_use_it_complains() -> None:
    said = "[Bug]: torch.cuda.is_available() = True RuntimeError: Torch is not able to use GPU;\n"
    assert triage(said).snapshot.get(Pasted).cuda_available is False


def test_a_working_cuda_is_said_to_work() -> None:
    report = triage("PyTorch version: 2.6.0+cu124\nIs CUDA available: True\n")
    assert "The text shows nothing wrong with PyTorch, CUDA or a GPU" in render(report)
    assert "PyTorch can use CUDA and the GPU there" in reply(report)


ODD_COMPANION = (
    "PyTorch version: 2.3.0+cu121\nIs CUDA available: True\n[pip3] torch==2.3.0\n"
    "[pip3] torchaudio==2.1.0\n"
)
EXCEPTION = (
    "Traceback (most recent call last):\n"
    '  File "/venv/lib/python3.11/site-packages/vllm/engine.py", line 7, in step\n'
    "KeyError: 'lm_head'\n"
)


def test_an_odd_companion_is_a_warning_beside_an_exception_that_it_does_not_touch() -> None:
    alone = triage(ODD_COMPANION)
    assert alone.root_causes == ("torch-companion-mismatch",)
    beside = triage(ODD_COMPANION + EXCEPTION)
    assert beside.root_causes == ("application-bug",)
    assert [(finding.slug, finding.severity.value) for finding in beside.standing[1:]] == [
        ("torch-companion-mismatch", "warning")
    ]


def test_what_failed_where_is_in_the_json() -> None:
    data = triage(EXCEPTION).as_json()
    assert (data["owner"], data["exception"], data["package"]) == ("library", "KeyError", "vllm")
    assert data["frame"] == "vllm/engine.py:7 step"
    own = triage(EXCEPTION.replace("/venv/lib/python3.11/site-packages/vllm/engine.py", "train.py"))
    assert (own.owner, own.as_json()["package"]) == ("user-code", "train.py")
    assert "exception" not in triage("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off").as_json()


def test_the_role_of_each_line_is_shown() -> None:
    text = "RuntimeError: Failed to initialize NVML: Driver/library version mismatch\n"
    assert "[exception]" in render(triage(text), lines=True)
    assert "[exception]" not in render(triage(text))


def test_a_traceback_that_is_cut_off_is_not_called_healthy() -> None:
    report = triage("".join(EXCEPTION.splitlines(keepends=True)[:2]))
    assert report.verdict == "unknown"
    assert "cut off" in report.open_questions[0].reason


def test_whose_code_failed_is_not_guessed_where_no_frame_shows_it() -> None:
    report = triage("torch with a GPU\nValueError: the head has another shape\n")
    assert (report.owner, report.root_causes) == ("code", ("application-bug",))
    assert report.standing[0].fixes[0].text.startswith("Look at the whole traceback")


@each(("beside", "cause"), [("", "application-bug"), ("torchrun\n", None)])
def test_a_crash_is_of_a_rank_only_where_there_are_several(beside: str, cause: str | None) -> None:
    found = triage(f"{beside}running torch on the GPU\nSegmentation fault (core dumped)\n")
    assert found.root_causes[:1] == (cause or "rank-crashed",)


def test_a_fault_of_triton_and_a_mask_beside_a_found_device_accuse_nothing() -> None:
    codegen = "RuntimeError: Internal Triton PTX codegen error\n"
    assert "extension-abi-mismatch" not in triage(f"With flash_attn:\n{codegen}").root_causes
    masked = "Is CUDA_VISIBLE_DEVICES=2 ignored?\n"
    assert triage(masked).root_causes == ("visible-devices-hides-gpus",)
    found = "I tensorflow/core/gpu_init.cc:102] Found device 0 with properties:\n"
    assert triage(masked + found).root_causes == ()


NO_CODE = "RTX 5090 with torch 2.5.1+cu124: torch.cuda.is_available() returns "


def test_a_build_without_code_for_the_gpu_does_not_explain_that_cuda_is_not_available() -> None:
    report = triage(f"{NO_CODE}False\n")
    assert report.root_causes == ("gpu-too-new-for-torch",)
    assert [question.fact for question in report.open_questions] == ["pasted.cuda_available"]
    assert "nvidia-smi" in reply(report)
    assert "does not make is_available() False; ask for: nvidia-smi" in render(report, width=200)
    with_driver = triage(f"{NO_CODE}False\n| NVIDIA-SMI 570.86.15  Driver Version: 570.86.15 |\n")
    assert "torch.cuda.init()" in str(with_driver.open_questions[0].reason)
    assert triage(f"{NO_CODE}True\n").open_questions == ()


KERNEL_OF_TORCH = (
    "THCudaCheck FAIL file=/conda-bld/torch/lib/THC/generic/THCTensorMathPointwise.cu line=246 "
    "error=8 : invalid device function\n"
)


def test_an_old_card_has_no_code_in_torch_itself() -> None:
    assert triage(f"GPU: GeForce GT 720M\n{KERNEL_OF_TORCH}").root_causes == (
        "gpu-too-old-for-torch",
    )
    seen = triage(f"torch.cuda.is_available()\nTrue\n{KERNEL_OF_TORCH}")
    assert "extension-gpu-unsupported" not in seen.root_causes


def test_what_failed_in_a_replica_is_not_the_exception_that_passes_it_on() -> None:
    raised = "RuntimeError: Caught RuntimeError in replica 1 on device 1.\n"
    assert triage(f"CUBLAS_STATUS_NOT_SUPPORTED\n\n{raised}").root_causes == (
        "cublas-runtime-failure",
    )


def test_a_torch_built_without_numpy_is_no_fault_of_the_program() -> None:
    report = triage("RuntimeError: PyTorch was compiled without NumPy support\n")
    assert "application-bug" not in report.root_causes


def test_an_indented_error_of_pip_is_no_field_of_a_listing() -> None:
    listed = "        Looking in indexes: https://a.example/simple\n        Looking in links: x\n"
    error = "        ERROR: Could not find a version that satisfies the requirement torch==1.9.0\n"
    assert triage(listed + error).root_causes == ("torch-python-unsupported",)


def test_another_major_release_of_cudnn_than_paddle_was_built_for_is_the_cause() -> None:
    warns = (
        "W0309 device_context.cc:295] WARNING: device: 0. The installed Paddle is compiled with "
    )
    other = f"{warns}CUDNN 7.6, but CUDNN version in your machine is "
    fails = (
        "ExternalError: Cudnn error, CUDNN_STATUS_BAD_PARAM at (/paddle/instance_norm_op.cu:177)\n"
    )
    assert triage(f"{other}5.1, which may cause\n").root_causes == ("cudnn-version-mismatch",)
    assert triage(f"{other}7.3, which may cause\n").root_causes == ()
    assert (
        triage(f"{other}7.3, which may cause\n{fails}").root_causes[0] == "cudnn-version-mismatch"
    )
