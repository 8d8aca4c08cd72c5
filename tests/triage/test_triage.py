"""What a text shows: causes before what follows from them, facts before what messages say."""

import pytest
from each import each

from gpucheck import triage
from gpucheck.engine import Report
from gpucheck.facts.claims import Confidence
from gpucheck.output import json_text
from gpucheck.ticket.given import IntakeError

HEALTHY = """
Collecting environment information...
PyTorch version: 2.6.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.5 LTS (x86_64)
Libc version: glibc-2.35

Python version: 3.11.9 (main) [GCC 11.4.0] (64-bit runtime)
Python platform: Linux-6.8.0-60-generic-x86_64-with-glibc2.35
Is CUDA available: True
CUDA runtime version: 12.4.131
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB
Nvidia driver version: 550.90.07
"""
COLLECTED = "python -m torch.utils.collect_env"


def causes(text: str) -> tuple[str, ...]:
    return triage(text).root_causes


def first(text: str) -> str:
    return (*causes(text), "nothing")[0]


def test_the_library_after_error_decides() -> None:
    text = (
        "Could not load library libcudnn_cnn_infer.so.8. Error: {}: cannot open shared object "
        "file: No such file or directory"
    )
    assert first(text.format("libcudnn_cnn_infer.so.8")) == "cudnn-missing"
    assert first(text.format("libnvrtc.so")) == "cuda-library-missing"
    assert first(text.format("libcuda.so") + "\nUbuntu 22.04 on WSL2") == "wsl-driver-problem"


@each(
    ("symbol", "cause"),
    [
        ("libtorch_cuda.so: undefined symbol: ncclCommRegister", "nccl-version-mismatch"),
        (
            "nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1",
            "cuda-library-conflict",
        ),
        ("torch/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent", "torch-import-broken"),
        (
            "flash_attn_2_cuda.cpython-310.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
            "extension-abi-mismatch",
        ),
        (
            "site-packages/torchvision/_C.so: undefined symbol: _ZN3c106detail14torchCheckFail",
            "torch-companion-mismatch",
        ),
    ],
)
def test_an_undefined_symbol_beats_the_file_it_is_missed_in(symbol: str, cause: str) -> None:
    assert first(f"ImportError: /opt/venv/lib/python3.10/site-packages/{symbol}") == cause


def test_the_rank_that_died_first_suppresses_the_others() -> None:
    text = """
[rank3]: torch.distributed.DistBackendError: NCCL error: ncclRemoteError: A call failed possibly due
node1:300:301 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer node1
[rank0]: RuntimeError: CUDA error: device-side assert triggered
[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE)
"""
    report = triage(text)
    assert report.root_causes == ("application-bug",)
    suppressed = {
        finding.slug for finding in report.findings if finding.silenced_by == "application-bug"
    }
    assert {"rank-crashed-elsewhere", "nccl-timeout"} <= suppressed


def test_out_of_memory_before_a_driver_reset_is_no_out_of_memory() -> None:
    text = """
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has
NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.
"""
    assert first(text) == "gpu-fallen-off-bus"


def test_memory_that_others_hold_is_told_from_a_workload_that_is_too_large() -> None:
    text = (
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; {} GiB total capacity; 2.10 GiB "
        "already allocated; 20.00 MiB free; 2.40 GiB reserved in total by PyTorch)"
    )
    assert first(text.format("7.80")) == "gpu-memory-held"
    assert first(text.format("2.60")) == "out-of-memory"


def test_a_compilers_bug_in_a_healthy_environment_is_no_fault_of_the_environment() -> None:
    bug = "torch._inductor.exc.InductorError: AttributeError: 'complex' object has no attribute"
    report = triage(f"{bug}\n{HEALTHY}")
    assert (report.verdict, report.root_causes) == ("broken", ("application-bug",))
    assert "InductorError" in report.standing[0].headline


def test_cuda_that_was_seen_to_work_outweighs_what_messages_and_tables_say() -> None:
    old = HEALTHY.replace("550.90.07", "470.57.02")
    assert causes(old) == ()
    assert first(old.replace("available: True", "available: False")) == "driver-too-old"
    assert causes(f"No module named 'sklearn'\n{HEALTHY}") == ()


@each("word", ["python -m bitsandbytes\nno output", "my screen is black", "{}"])
def test_a_text_that_tells_nothing_is_unknown_and_says_what_to_ask_for(word: str) -> None:
    report = triage(word)
    assert report.verdict == "unknown"
    assert report.root_causes == ()
    assert report.exit_status("error") == 3
    (question,) = report.open_questions
    assert COLLECTED in question.reason


@each("empty", ["", "\n\n\n", " \t\r\n", "\ufeff", "\x1b[0m\n"])
def test_an_empty_text_is_called_empty(empty: str) -> None:
    with pytest.raises(IntakeError, match="is empty"):
        triage(empty)


def test_cuda_that_is_not_available_for_no_visible_reason_is_unknown() -> None:
    report = triage(HEALTHY.replace("available: True", "available: False"))
    assert report.verdict == "unknown"
    assert "torch.cuda.init()" in report.open_questions[0].reason


@each(
    ("gpu", "torch", "cause"),
    [
        ("NVIDIA GeForce RTX 5090", "2.2.0+cu121", "gpu-too-new-for-torch"),
        ("NVIDIA GeForce GTX 1050", "2.8.0+cu128", "gpu-too-old-for-torch"),
        ("NVIDIA A100-SXM4-80GB", "2.8.0+cu128", "extension-gpu-unsupported"),
    ],
)
def test_facts_decide_what_no_kernel_image_means(gpu: str, torch: str, cause: str) -> None:
    text = f"""
CUDA error: no kernel image is available for execution on the device
- PyTorch Version: {torch}
- GPU: {gpu}
- OS: Linux
"""
    assert first(text) == cause


def test_a_text_and_facts_that_agree_are_one_finding_with_both_as_evidence() -> None:
    text = """
The NVIDIA driver on your system is too old (found version 11040).
PyTorch version: 2.1.0+cu121
Is CUDA available: False
GPU models and configuration: GPU 0: NVIDIA A10
Nvidia driver version: 470.57.02
"""
    report = triage(text)
    (finding,) = report.standing
    assert finding.slug == "driver-too-old"
    assert finding.confidence is Confidence.CERTAIN
    facts = {evidence.fact.partition(".")[0] for evidence in finding.evidence}
    assert "pasted" in facts
    assert len(facts) > 1
    assert all(evidence.source for evidence in finding.evidence)


def test_evidence_names_the_lines() -> None:
    report = triage("one\ntwo\nFailed to initialize NVML: Driver/library version mismatch\n")
    assert report.findings[0].evidence[0].source == "line 3"


@each(
    "text",
    [
        "> > Failed to initialize NVML: Driver/library version mismatch",
        "\x1b[31mFailed to initialize NVML: \x1b[0mDriver/library version mismatch\x1b[0m",
        "[rank0]: 2026-01-02 03:04:05,678 NVML: Driver/library version mismatch\r\n",
        "Failed to initialize NVML\uff1a Driver/library version mismatch",
        "<pre>Failed to initialize NVML: Driver/library version mismatch</pre>",
        '{"log": "x\\nFailed to initialize NVML: Driver/library version mismatch\\n"}',
    ],
)
def test_dressed_up_lines_are_read(text: str) -> None:
    assert first(text) == "driver-library-mismatch"


def test_two_nodes_with_different_nccl_are_told() -> None:
    text = "node{}:1:1 [0] NCCL INFO cudaDriverVersion 12020\nNCCL version 2.{}.3+cuda12.1\n"
    assert first(text.format(1, 14) + text.format(2, 19)) == "nccl-version-mismatch"
    assert causes(text.format(1, 14) + text.format(2, 14)) == ()


def judged_again(report: Report) -> Report:
    return triage(json_text.render(report))


def test_a_saved_report_of_a_text_names_the_same_cause_again() -> None:
    report = triage("NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000")
    again = judged_again(report)
    assert again.root_causes == report.root_causes == ("nccl-duplicate-gpu",)
    assert again.findings[0].headline == report.findings[0].headline


def test_a_false_after_a_true_is_what_is_complained_of() -> None:
    text = """with the old version:
>>> torch.cuda.is_available()
True
after the update:
>>> torch.cuda.is_available()
False
The NVIDIA driver on your system is too old (found version 10010).
"""
    assert first(text) == "driver-too-old"


def test_a_comment_in_code_is_no_answer() -> None:
    text = "torch.cuda.is_available()  # will return true\n"
    assert triage(text).verdict == "unknown"


def test_an_error_of_cuda_that_nobody_knows_is_not_healthy() -> None:
    assert triage(HEALTHY).verdict == "healthy"
    assert triage(f"{HEALTHY}CUDA error: the moon is full\n").verdict == "unknown"


def test_answers_between_letters_of_another_script_count() -> None:
    text = "服务器上torch.cuda.is_available() 为True\uff0c本地就是False\uff0cGPU版本怎么安装\n"
    text = f"{text}torch.cuda.is_available()发现是False\n"
    assert first(text) == "torch-cpu-only"


def test_full_width_punctuation_fills_the_place_of_a_blank() -> None:
    text = (
        "RuntimeError\uff1aCUDA error\uff1ano kernel image is available\n"
        "RTX 5090\uff0ctorch 2.3.0+cu121\n"
    )
    assert first(text) == "gpu-too-new-for-torch"


def test_docker_logs_its_lines_in_json() -> None:
    text = '{"log":"ValueError: operator torchvision::roi_align does not exist\\n","stream":"e"}\n'
    assert first(text) == "torch-companion-mismatch"
    assert first(text[:-12]) == "torch-companion-mismatch"  # cut short: read as it stands
    assert first(text + '{"log":"x","stream":' + "[" * 3000) == "torch-companion-mismatch"


@each(
    "line",
    [
        "CUDA error (/b/third_party/flash-attention/hopper/x.h:167): no kernel image is available",
        "[ONNXRuntimeError] : 1 : FAIL : cudaErrorNoKernelImageForDevice:no kernel image",
        "CUDA failure 209: no kernel image is available on it ; GPU=0 ; hostname=box ; file=a.cc",
    ],
)
def test_the_library_that_reports_a_missing_kernel_is_the_one_that_lacks_it(line: str) -> None:
    assert first(f"On my RTX 5090 (Blackwell, sm_120):\n{line}\n") == "extension-gpu-unsupported"


def test_a_path_of_macos_is_no_reboot() -> None:
    text = (
        "OSError: dlopen(/opt/x/libfoo.dylib, 0x0006): tried: "
        "'/System/Volumes/Preboot/Cryptexes/OS/opt/x/libfoo.dylib' (no such file), training\n"
    )
    assert "thermal-or-power-throttle" not in causes(text)


def test_where_it_runs_is_not_why_an_operator_is_missing() -> None:
    text = (
        "ValueError: Could not find the operator torchvision::nms.\n"
        "The environment below is from a CPU only server, CUDA 12.1\n"
    )
    assert first(text) == "torch-companion-mismatch"


def test_the_name_of_a_compose_service_is_no_container_in_the_text() -> None:
    lines = (
        "Traceback (most recent call last):",
        "  x",
        "RuntimeError: No CUDA GPUs are available",
    )
    plain = first("\n".join(lines))
    assert first("\n".join(f"webui-docker-auto-1  | {line}" for line in lines)) == plain


def test_true_only_as_root_is_a_matter_of_permission() -> None:
    text = "torch.cuda.is_available() is True only as root, for my user it is False\n"
    assert first(text) == "device-permission"


@each(
    "machine", ["Ubuntu 22.04 on WSL2", "Platform: Linux-5.15.153.1-microsoft-standard-WSL2-x86_64"]
)
def test_inside_wsl_no_compute_mode_keeps_a_process_out(machine: str) -> None:
    text = "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"
    assert first(f"RTX 3060\n{text}") == "compute-mode-exclusive"
    report = triage(f"{machine}, RTX 3060\n{text}")
    assert report.root_causes == ("wsl-driver-problem",)
    assert report.causes[0].confidence is Confidence.POSSIBLE
    assert "compute mode" not in report.causes[0].headline


def test_on_windows_a_busy_gpu_is_not_one_in_exclusive_mode() -> None:
    text = "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"
    assert first(f"OS: Microsoft Windows 11 Pro\n{text}") == "nothing"
