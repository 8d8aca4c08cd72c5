"""Healthy is said only where something examined works, or where nobody complains."""

from each import each

from gpucheck import triage
from gpucheck.facts.request import Pasted
from gpucheck.ticket.ticket_reply import reply

SMI = """\
Tue Mar  3 10:21:45 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.172.08             Driver Version: 570.172.08     CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 4090        Off |   00000000:07:00.0 Off |                  Off |
| 30%   31C    P8             22W /  450W |     812MiB /  24564MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""
ENVIRONMENT = """\
PyTorch version: 2.8.0+cu128
Is debug build: False
CUDA used to build PyTorch: 12.8
OS: Ubuntu 24.04.2 LTS (x86_64)
Is CUDA available: True
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 4090
Nvidia driver version: 570.172.08
"""
CLAIMED = """\
My GPU is slow, please help
not using gpu???
gpu not working
It doesn't use my 3090
Training takes forever on my new card, is that normal?
CUDA broken after update, pls fix
After driver update everything is super slow now. RTX 4080, Windows 11.
gpu utilization stuck at 3%, cpu at 100
ComfyUI only runs on my CPU, I have a 4070
Since yesterday my training hangs at the first step. 1 GPU, 18 GB of memory are held.
ollama is not detecting the card any more
My PC reboots whenever I start training
two gpus, the second one is idle all the time
training freezes after epoch 3, no error
I bought a second GPU and now neither works.
La GPU no se usa durante el entrenamiento
Meine GPU wird nicht benutzt, was kann ich tun?
Das Training ist extrem langsam, die Grafikkarte langweilt sich.
PyTorch findet meine Grafikkarte nicht
Видеокарта не работает с pytorch, помогите
Обучение идёт очень медленно, GPU почти не загружен
GPU が使えません。助けてください。
学習がとても遅いです。GPUを使っていないようです。
GPU 不能用
训练很慢
显卡没反应
显卡利用率一直是 0，怎么办？
跑起来特别慢，感觉没用上显卡
torch 装不上
cuda用不了了，求助
为什么我的显卡占用率上不去
推理速度比以前慢了一倍，显卡是 4090，什么原因？
单卡训练跑了几步就不动了，显存一直占着 18G，没有任何报错
程序卡住不动，nvidia-smi 显示显存占用 18GB，利用率 0%
我的笔记本有 3060，但是 whisper 只用 CPU 跑
loss 变 nan 了是不是显卡坏了
加载模型要十分钟，正常吗？
服务器上八张卡，有一张掉了
Ollama uses the graphics card until my PC sleeps. After that it always falls back to the CPU.
It says that my wheel wasn't built with CUDA support, whatever I install.
It was looking for Cuda but found CPU since the update of the web ui.
两台机器的多机训练一直连接超时，单机没问题
I have trouble installing MinkowskiEngine for CUDA, which version of the compiler does it need?
"""
"""Complaints that show nothing, a line each."""
OF_OTHER_THINGS = """\
hello
你好，在吗？
Preheat the oven to 180 degrees. Mix 200 g of flour with two eggs and a pinch of salt. Let it cool.
五花肉切块，冷水下锅焯水，加冰糖炒出糖色，放入酱油、料酒和八角，小火慢炖一个小时，最后大火收汁。
cd src && ls -la && git status && git pull && make -j8 && ./run.sh
The notes of Tuesday: Anna presents the budget, Tom asks about the new office, lunch at noon.
"""
BESIDE_A_TABLE = """\
No GPU or other accelerator detected
WARNING: No GPU found, falling back to CPU
My training is slow, GPU-Util stays at 0:
hangs after loading the model, nothing printed
Device: cpu. Why?
Train script says: using cpu
Warum wird die GPU nicht benutzt?
GPUが検出されません。nvidia-smiの出力:
nvidia-smi 正常，但是程序说没有检测到 GPU：
为什么程序不用显卡？nvidia-smi 的输出如下
模型加载后就没动静了
但是 torch 找不到显卡
"""
INTRODUCTIONS = """\
$ nvidia-smi
Here is my nvidia-smi, can I fine-tune a 7B model on it?
Which PyTorch version should I install for this driver?
output of nvidia-smi:
这张卡能跑 7B 模型吗？
下面是 nvidia-smi 的输出
驱动需要升级吗？
"""
QUESTIONS = """\
Does vLLM support the RTX 5090?
How do I fine-tune the model on several GPUs? Is there an example for two cards?
能不能用两张 3090 训练这个模型？
大佬，可以提供一个torch版本的不
"""
ENDED_WELL = (
    "".join(
        f"Epoch {at}/3: 100%|#####| 500/500 [01:02<00:00,  8.05it/s, loss=0.{9 - at}12]\n"
        for at in (1, 2, 3)
    )
    + "Training finished.\n",
    "Using device: cuda\nepoch 1 loss 0.92\nepoch 2 loss 0.61\nSaved model to out\nDone.\n",
    "step:899/900 train_time:200ms\nstep:900/900 train_time:201ms\npeak memory: 29998 MiB\n",
    "{'train_runtime': 812.3, 'train_samples_per_second': 12.1, 'train_loss': 0.91}\n",
    'INFO:     Application startup complete.\n127.0.0.1:51 - "POST /v1 HTTP/1.1" 200 OK\n',
    "使用 GPU：NVIDIA GeForce RTX 4090\n第 1 轮 loss: 0.92\n训练完成，模型已保存\n",
)


@each("text", CLAIMED.splitlines() + OF_OTHER_THINGS.splitlines())
def test_what_shows_nothing_is_unknown_and_asks_for_something(text: str) -> None:
    report = triage(text)
    if (by_wording := report.snapshot.get(Pasted).by_wording) is None:
        assert (report.verdict, report.root_causes) == ("unknown", ())
    else:  # a possible cause, for which the reply asks as well
        assert report.root_causes == (by_wording,)
    assert report.open_questions or by_wording
    assert "Please send" in reply(report)


@each("line", BESIDE_A_TABLE.splitlines())
def test_a_good_table_does_not_answer_a_complaint(line: str) -> None:
    for text in (f"{line}\n\n{SMI}", f"{SMI}\n{line}\n"):
        report = triage(text)
        assert (report.verdict, report.root_causes) == ("unknown", ())
        assert report.open_questions[0].fact == "pasted.complaint"


@each("line", ["", *INTRODUCTIONS.splitlines()])
def test_a_good_table_without_a_complaint_is_healthy(line: str) -> None:
    assert triage(f"{line}\n{SMI}").verdict == "healthy"


@each("text", [ENVIRONMENT, f"这是我的环境：\n{ENVIRONMENT}", *QUESTIONS.splitlines(), *ENDED_WELL])
def test_what_works_and_what_is_only_asked_is_healthy(text: str) -> None:
    assert (triage(text).verdict, triage(text).root_causes) == ("healthy", ())


def test_what_stands_still_after_some_steps_has_not_ended_well() -> None:
    steps = "step 100 | loss 3.2\nstep 200 | loss 2.9\n"
    assert triage(f"{steps}Training completed in 3h\n").verdict == "healthy"
    assert triage(f"{steps}and then it is stuck\n").verdict == "unknown"


@each(
    ("text", "cause"),
    [
        ("!!! cuda out of memory. tried to allocate 2.00 GiB (GPU 0) torch", "out-of-memory"),
        ("[worker-3] 10:21 >> torch NOT COMPILED WITH CUDA ENABLED", "torch-cpu-only"),
        ("运行时提示 Torch not compiled with CUDA enabled", "torch-cpu-only"),
        ("Failed to initialize NVML - Driver/Library Version Mismatch", "driver-library-mismatch"),
        ("log> nvrm: xid (pci:0000:3b:00): 79, gpu has fallen off the bus.", "gpu-fallen-off-bus"),
        ("cuda driver version is insufficient for cuda runtime version!!!", "driver-too-old"),
        ("my model\nmodule 'cm_global' has no attribute 'error_dict'", "application-bug"),
        ("with trl 0.5.0 I get\nname ‘PeftModel’ is not defined", "application-bug"),
        ("fairseq-train: error: argument --max-tokens: invalid value: '4096'", "application-bug"),
        ("运行的时候，报错RuntimeError: The first supplied array is empty", "application-bug"),
        (
            "('The detected CUDA version (%s) mismatches torch', '11.3', '12.8')",
            "toolkit-torch-mismatch",
        ),
        ("import flash_attn_2_cuda 报错undefined symbol的时候", "extension-abi-mismatch"),
        ("NVRM: API mismatch: the client has the version XXX, but", "driver-library-mismatch"),
        ("[Errno 2] No such file: ':/usr/local/cuda/bin/nvcc': not found", "toolkit-missing"),
        ("works with NCCL_IB_DISABLE=1 only", "nccl-infiniband"),
        ("3090显卡，torch1.10.0-cu102环境报错", "gpu-too-new-for-torch"),
        ("Our 3090 fails with torch 1.10.0+cu102. Why?", "gpu-too-new-for-torch"),
        (
            "flash_attn-2.5.6-cp310-linux_x86_64.whl is not a supported wheel on this platform.",
            "torch-python-unsupported",
        ),
    ],
)
def test_a_known_line_counts_in_any_layout(text: str, cause: str) -> None:
    assert triage(text).root_causes[:1] == (cause,)


@each(
    "end",
    [
        "deviceQuery, CUDA Driver = CUDART, NumDevs = 2\nResult = PASS",
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 28.2632",
        ':::MLLOG {"key": "run_stop", "metadata": {"lineno": 144, "status": "success"}}',
        "================ 12 passed, 1 skipped in 3.10s ================",
    ],
)
def test_what_ends_well_is_healthy(end: str) -> None:
    informed = "n:1:2 [0] NCCL INFO dlvsym failed on mlx5dv_get_data: undefined symbol\n"
    assert triage(f"{informed}device = cuda:0\n{end}\n").verdict == "healthy"
    assert (
        triage("device = cuda:0\n===== 1 failed, 12 passed in 3.10s =====\n").verdict != "healthy"
    )


def test_what_a_program_that_found_no_gpu_prints_is_not_healthy() -> None:
    asked = "How do I train this model with PyTorch on my own pictures of cats and dogs?\n\n"
    for line in ("No devices were found", "-- The CUDA compiler identification is unknown"):
        assert triage(f"{asked}{line}\n").verdict == "unknown"


def test_lines_that_programs_always_print_resemble_no_fault() -> None:
    log = (
        "[    5.123456] nvidia: loading out-of-tree module taints kernel.\n"
        "[    5.323456] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.172.08\n"
    )
    assert triage(log).root_causes == ()
    assert "leads" not in triage(log).as_json()


def test_an_error_in_a_picture_was_not_examined() -> None:
    told = "I train the model on my GTX 1050 Ti with the data of the paper, all folders are ready. "
    picture = "![Capture](https://example.com/60453960.jpg)\n"
    seen = triage(f"GPU training\n{told}Then I got this error:\n\n{picture}")
    assert (seen.verdict, seen.open_questions[0].fact) == ("unknown", "pasted.complaint")
    assert triage(f"GPU training\n{told}Is this curve good?\n\n{picture}").verdict == "healthy"


def test_cuda_at_work_on_one_node_says_nothing_of_several() -> None:
    text = "Rendez vous timeout error on 2 nodes with Slurm\n"
    report = triage(text + ENVIRONMENT)
    assert (report.verdict, report.root_causes) == ("unknown", ())
    assert (
        triage(ENVIRONMENT + "I train on 2 nodes and would like to know more\n").verdict
        == "healthy"
    )


CUT_OFF = """\
pytorch version: 2.4.1+cu121
Device: cuda:0 NVIDIA GeForce RTX 4060 Ti : cudaMallocAsync
Traceback (most recent call last):
  File "/srv/app/nodes_audio.py", line 1, in <module>
    import torchaudio
  File "/srv/env/lib/python3.11/site-packages/torchaudio/__init__.py", line 2, in <module>
    from . import _extension
"""


def test_a_traceback_without_its_end_is_open_although_cuda_is_at_work() -> None:
    assert triage(CUT_OFF).verdict == "unknown"
    assert triage(CUT_OFF.partition("Traceback")[0]).verdict == "healthy"


@each("text", ["train.py一跑，过一会儿电脑就重启", "用1080Ti训练，机器突然关机"])
def test_a_machine_that_restarts_by_itself_is_not_healthy(text: str) -> None:
    assert triage(text).verdict == "unknown"
