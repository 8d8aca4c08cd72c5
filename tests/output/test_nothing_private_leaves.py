"""What leaves the machine has no name, no address and no key in it, whatever their form.

And what gpucheck itself wrote stays as it is, whoever has a name like one of its words.
"""

import functools
import io
import json
import re
import zipfile
from collections.abc import Callable

import machine_files
import msgspec
import preflight_samples as samples
import report_samples
from each import each
from more_secrets import MORE_LINES, OF_PROGRAMS, OF_SCHEDULERS
from rules_support import TABLES, snapshot

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import RankResult, Step, StepResult
from gpucheck.cluster.pages import files as preflight_metrics
from gpucheck.cluster.pages import files as preflight_record
from gpucheck.cluster.pages.bundle import Public, bundle
from gpucheck.doctor.collector import Collector
from gpucheck.engine import Report, judge_machine
from gpucheck.facts.driver import NvidiaSmi
from gpucheck.facts.preflight import Look
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import OTHER_NAMES, PATH_NAMES, Container, Environment, System
from gpucheck.facts.torch import Interpreter, Packages, PackageSources
from gpucheck.machine.candidates import TargetWish
from gpucheck.output import junit, markdown, ticket_text
from gpucheck.output.html import report as html_report
from gpucheck.output.json_text import json_text
from gpucheck.output.json_text import render as render_json
from gpucheck.output.public import public
from gpucheck.output.redact import redact
from gpucheck.programs.questions import Setting, asked
from gpucheck.ticket import ticket_reply
from gpucheck.ticket.judge import triage

# A line of a ticket, and what must not be left of it.
LINES = [
    ("mara.voss@lab-gpu-17:~$ python run.py", ["mara.voss", "lab-gpu-17"]),
    ("lab-gpu-18:4242:4311 [3] NCCL WARN Connect to 10.66.7.8<51022> failed", ["gpu-18", "10.66"]),
    ("Mar  5 12:00:01 lab-gpu-19 kernel: NVRM: Xid (PCI:0000:01:00): 79", ["lab-gpu-19"]),
    ("2024-03-05T12:00:01+0100 kestrel-4 kernel: NVRM: x", ["kestrel-4"]),
    ("uid=1017(rvoss) gid=1017(rvoss) groups=1017(rvoss),44(video)", ["rvoss"]),
    ("-rw-r--r-- 1 quillon biolab 4096 Mar  5 12:00 run.log", ["quillon", "biolab"]),
    ("user=tbergmann is not in the group video", ["tbergmann"]),
    ("the job was submitted by e_lindqvist", ["lindqvist"]),
    ("cannot read it as user 'pkowalczyk'", ["kowalczyk"]),
    ("/home/wzimmer/train.py failed; wzimmer has no access", ["wzimmer"]),
    ("C:\\Users\\Wiebke\\venv\\python.exe failed", ["Wiebke"]),
    ("ssh: connect to host otter-3 port 22: Connection refused", ["otter-3"]),
    ("MASTER_ADDR=head.hpc.uni-example.edu MASTER_PORT=29500", ["uni-example"]),
    ("connect to [worker-0.train.svc.cluster.local]:29500 timed out", ["worker-0", "train.svc"]),
    ("tcp://rack7-n3:23456 did not answer", ["rack7-n3"]),
    ("srun: error: bison12: task 3: Exited with exit code 1", ["bison12"]),
    ("hostname: condor-9", ["condor-9"]),
    ("the store is at 172.20.3.44:29500", ["172.20"]),
    ("peer 192.168.44.5 has left", ["192.168"]),
    ("bound to 2a02:8071:22c:1::77 port 29500", ["2a02", "8071"]),
    ("peer fe80::9a03:9bff:fe11:2233%ib0<33811>", ["9a03", "fe11"]),
    ("no route to fd4c:11::9", ["fd4c"]),
    ("link/ether 0c:42:a1:5e:11:7f brd ff:ff:ff:ff:ff:ff", ["5e:11"]),
    ("write to helga.lund@acme-ml.example please", ["helga", "acme-ml"]),
    ("password=Tr0ub4dor&3 was wrong", ["Tr0ub4dor"]),
    ('{"db_passwd": "correcthorse"}', ["correcthorse"]),
    ("api-key: 77aa1199zz", ["77aa1199zz"]),
    ("key=sk-proj-9fQz81LmNo", ["9fQz81LmNo"]),
    ("OPENAI=sk-ant-api03-Zz91kk", ["Zz91kk"]),
    ("HF_TOKEN=hf_QwErTyUiOpAs", ["QwErTy"]),
    ("hf_ZxCvBnMaSdFgHj was used", ["ZxCvBn"]),
    ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", ["292c6912"]),
    ("glpat-xYz12_abcDEF34ghi", ["abcDEF34"]),
    ("AKIAIOSFODNN7QWERTYU", ["IOSFODNN7"]),
    ("Authorization: Bearer abcDEF.123-xyz", ["abcDEF"]),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", ["eyJzdWIi", "c2lnbm"]),
    ("xoxb-2401-778122-aZ9", ["778122"]),
    ("https://deploy:pa55w0rt@wheels.acme-ml.example/simple", ["pa55w0rt", "acme-ml"]),
    ("https://conda.acme-ml.example/t/mv-3f1c-77/own/linux-64", ["3f1c", "acme-ml"]),
    ("s3.example.com/x?X-Amz-Signature=abc77def&y=1", ["abc77def"]),
    ("nvapi-Zk31_aaBBcc9911 is expired", ["aaBBcc"]),
    ("Login: oskar.nyman failed", ["nyman"]),
    ("-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1rZXk", ["b3BlbnN"]),
    ("sudo:  jfontaine : TTY=pts/0 ; COMMAND=/usr/bin/nvidia-smi", ["jfontaine"]),
    ("sshd[991]: Failed password for invalid user gannet from 10.88.1.2", ["gannet", "10.88"]),
    ("sshd[991]: Accepted publickey for gannet from 10.88.1.2 port 50111", ["gannet"]),
    ("su: pam_unix(su:auth): authentication failure for shearwater", ["shearwater"]),
    ("systemd[1]: Started Session 12 of user gannet.", ["gannet"]),
    ("Could not get lock held by process 991 (owner gannet)", ["gannet"]),
    ("Owner UID 1017 (gannet)", ["gannet"]),
    ('"clientSecret": "ternQ88zz", accessToken=ternQ99yy', ["ternQ88", "ternQ99"]),
    ("Cookie: session=ternternQ33abc; other=skuaQ1", ["ternternQ33", "skuaQ1"]),
    ("Timed out after 901 seconds waiting for clients at petrel-gpu-03:29500", ["petrel"]),
    ("petrel-gpu-03: Connection closed by remote host", ["petrel"]),
    ("inet 10.88.0.5/24 brd 10.88.0.255", ["10.88"]),
    # what a program is called, in lines of the kernel
    ("NVRM: Xid (PCI:0000:01:00): 31, pid=4711, name=kestrelfit, Ch 0000000a", ["kestrelfit"]),
    ("NVRM: Xid (PCI:0000:01:00): 13, pid=88, name=ray::OwlTrainer, Graphics", ["OwlTrainer"]),
    ("Out of memory: Killed process 4711 (plover-serve) total-vm:1kB", ["plover"]),
    ("oom-kill:constraint=CONSTRAINT_NONE,task=plover-serve,pid=4711,uid=1017", ["plover"]),
    ("CPU: 3 PID: 4711 Comm: wigeon_srv Tainted: P", ["wigeon"]),
    ("wigeon_srv[4711]: segfault at 8 ip 00007f sp 00007f error 4 in libcuda.so", ["wigeon"]),
    # groups, id, and the greeting of a login
    ("$ groups\nbiolab plover-team video", ["biolab", "plover"]),
    ("uid=1017(rvoss) gid=100(users) groups=100(users),1050(biolab)", ["rvoss", "biolab"]),
    ("Last login: Tue Mar  4 10:11:12 2025 from nightjar-jump", ["nightjar"]),
    ("Last failed login: Tue Mar  4 10:11:12 UTC 2025 from nightjar on ssh:notty", ["nightjar"]),
    # images of somebody on a registry of everybody
    ("docker.io/ploverlab/wigeon-train:v3", ["plover", "wigeon"]),
    ("ghcr.io/ploverlab/wigeon:heron-2", ["plover", "wigeon", "heron"]),
    ("Unable to find image 'ploverlab/wigeon:latest' locally", ["plover", "wigeon"]),
    ("  image: nvcr.io/q1w2e3/ploverteam/wigeon:1.2", ["q1w2e3", "plover", "wigeon"]),
    ("docker pull ploverlab/wigeon", ["plover", "wigeon"]),
    ("docker run --rm --gpus all -v /x:/y ploverlab/wigeon:2 nvidia-smi", ["plover", "wigeon"]),
]
WHOLE_LINES = [
    ("fabert : fabert biolab video", ["fabert", "biolab"]),
    ("tkovacs biolab adm docker video", ["tkovacs", "biolab"]),
    ("Welcome to nightjar3!", ["nightjar"]),
    ("*** Welcome to the Plover HPC cluster of Wigeon University ***", ["plover", "wigeon"]),
    ("FROM ploverlab/wigeon:12.4", ["plover", "wigeon"]),
]
"""Forms that begin at the start of a line, or end with it."""
ERROR = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
TICKETS: dict[str, Callable[[Report], str]] = {
    "terminal": lambda report: ticket_text.render(report, lines=True),
    "reply": ticket_reply.reply,
    "reply-zh": lambda report: ticket_reply.reply(report, "zh"),
    "markdown": markdown.render,
    "html": html_report.render,
    "json": render_json,
    "junit": junit.render,
}
MACHINES: dict[str, Callable[[Report], str]] = {
    "markdown": markdown.render,
    "html": html_report.render,
    "json": render_json,
    "junit": junit.render,
    "collect": lambda result: json_text(redact(result.snapshot).as_json()),
}


def _left(text: str, private: list[str]) -> list[str]:
    return [secret for secret in private if secret.lower() in text.lower()]


@each(("line", "private"), [*LINES, *MORE_LINES, *OF_PROGRAMS, *OF_SCHEDULERS], shards=4)
def test_a_quoted_line(line: str, private: list[str]) -> None:
    before = "" if "\n" in line else f"{line}: "  # of several lines the form ends with the line
    ticket = f"$ nvidia-smi\n{ERROR}; {line}\n{line}\n{before}{ERROR}\n{ERROR}\n"
    report = triage(ticket, TABLES)
    assert report.root_causes
    shown = public(report)  # once: every writer leaves a redacted report as it is
    for name, render in TICKETS.items():
        assert _left(render(shown), private) == [], name
    answer = asked("triage", {"text": ticket}).answer(Setting())
    assert _left(answer.text + json.dumps(answer.data), private) == []


@each(("line", "private"), [*LINES, *WHOLE_LINES, *MORE_LINES, *OF_PROGRAMS, *OF_SCHEDULERS])
def test_a_line_of_a_log(line: str, private: list[str]) -> None:
    """Alone, because what one line marks as a name is found in all others, too."""
    shown = redact(snapshot(NvidiaSmi(message=f"it has failed: {line}\n{line}\nthere")))
    assert _left(shown.get(NvidiaSmi).message or "", private) == []


def test_all_lines_in_all_formats() -> None:
    lines = "\n".join(
        line for line, _private in (*LINES, *MORE_LINES, *OF_PROGRAMS, *OF_SCHEDULERS)
    )
    report = report_samples.report(
        System(os="linux", user="alice", hostname="box"),
        NvidiaSmi(message=lines),
        Interpreter(status="signal", problems={"*": lines}),
    )
    private = [
        word
        for _line, words in (*LINES, *MORE_LINES, *OF_PROGRAMS, *OF_SCHEDULERS)
        for word in words
    ]
    for name, render in MACHINES.items():
        assert _left(render(report), private) == [], name


def test_a_line_that_tells_nothing_private_stays() -> None:
    for line in (
        "nvidia-cudnn-cu12==9.1.0.70 needs cuDNN 9.1.0.70, cuBLAS 12.4.5.8, cuRAND 10.3.5.147",
        "c10::Error: at::native::add, std::string 0000:3b:00.0 12:34:56 memcpy@GLIBC_2.14",
        "nvidia/cuda@sha256:0f1e2d3c4b5a, torch @ file, max_new_tokens=128, tokenizer=Bert",
        "device='cuda:0', key='layer.0.weight', user code, the host memory, node 3 of 8",
        "Build cuda_12.4.r12.4/compiler.34097967_0 on x86_64",
        "https://download.pytorch.org/whl/cu128 and https://github.com/pytorch/pytorch/issues/1",
        "IndexError at train.py:30, x.cpp:172, [rank0]:45",
        "pip install --user torch; docker run --user 1000 -p 8888:8888 nvidia/cuda:12.4.1-base",
        "copied C:\\Windows\\x and failed; see C:\\Program Files\\NVIDIA Corporation\\NVSMI\\x",
        "conda install -c nvidia/label/cuda-12.1.0 -c conda-forge pytorch; channel: pytorch",
        "/usr/lib/python3/dist-packages/vllm/engine/llm_engine.py:517: in step",
        "namespace at::native, pods are pending, kubectl get pods -n kube-system",
        "Linux version 6.8.0-45-generic, Linux kernel 5.15.0-91, JOB 8812 failed, port 29500",
        "serial: no, Serial Number : N/A, GUID: none, (3, 1024) to (batch, 4096), 60 fps-i-1",
        "%sudo ALL=(ALL) NOPASSWD:ALL; tokenizer_name-x.json; self.conv.de, torch.utils.data",
        "cp /data/x /data/y of 2024-05-06T07:08:09",
        "NVRM: Xid (PCI:0000:01:00): 31, pid=4711, name=python3.11, Ch 0000000a",
        "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off",
        "Out of memory: Killed process 4711 (pt_main_thread) total-vm:1kB; Comm: Xorg Not tainted",
        "Welcome to Ubuntu 22.04.5 LTS (GNU/Linux 5.15.0-91-generic x86_64)",
        "Last login: Tue Mar  4 10:11:12 on ttys001",
        "docker run --rm --gpus all nvidia/cuda:12.4.1-base-ubuntu22.04 nvidia-smi",
        "#SBATCH --partition=gpu-long, sbatch -p a100 -J train, PartitionName=rtx4090 QOS=normal",
        "Switched APIC routing to cluster x2apic. ----Partition Activations False, CPU True",
        "Compute Partition: SPX, the data partition is full, in partition mode NPS1, cluster mode",
        "gpu*         up   infinite      4   idle 4, JobName=train on cluster. kubectl get nodes",
        "FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime",
        "nvcr.io/nvidia/pytorch:25.01-py3, ghcr.io/huggingface/text-generation-inference:3.0",
        "docker.io/library/ubuntu:22.04, vllm/vllm-openai:latest, image: ubuntu:22.04",
        "image: nvcr.io/nvidia/pytorch:24.10-py3",
        "add the user to the groups video and render; video render",
        "the video and audio users of docker; run docker with sudo; sudo docker video crashes",
        "video render crashes",
        "it failed at train-1.py:3000; rank0: connection closed; failed to accept for the test",
        "pad_token=x, eosToken=2, unk_token: <unk>",
        "sudo docker crashes",
        "from pytorch/torch import x; image: data/train.png; image 640/480",
    ):  # fmt: skip
        taken = report_samples.report(NvidiaSmi(message=line)).snapshot
        assert redact(taken).get(NvidiaSmi).message == line


SECRETS = ("hunter2x", "sk-1234-abcd", "correct horse battery", "Passw0rt!", "a1b2c3d4e5f6g7")


@each("secret", SECRETS)
def test_a_variable_that_holds_no_setting(secret: str) -> None:
    names = [name for name in OTHER_NAMES if name not in ("MASTER_ADDR", "CONDA_DEFAULT_ENV")]
    report = report_samples.report(
        Environment(variables=dict.fromkeys((*names, *PATH_NAMES), secret)),
        Container(requirements=secret, visible_devices=secret, driver_capabilities=secret),
        PackageSources(conda_channels=[secret]),
        Packages(conda_packages=[f"torch 2.1 0 {secret}".replace(" horse ", "-")]),
    )
    for name, render in MACHINES.items():
        assert _left(render(report), [secret, "correct-battery"]) == [], name


@each(
    "value",
    ["0,1", "all", "8.0;9.0+PTX", "expandable_segments:True,max_split_size_mb:128", "eth0,=ib0",
     "mlx5_0:1,^mlx5_bond_0", "cuda>=12.4 brand=tesla,driver>=470,driver<471", "compute,utility",
     ":4096:8", "gpu:a100:4", "PCI_BUS_ID", "INIT,NET", "LL128", "0x1", "", "-1", "enp65s0f0np0",
     "482113_4", "AWS Libfabric", "docker"],
)  # fmt: skip
def test_a_setting_stays(value: str) -> None:
    taken = report_samples.report(Environment(variables={"NCCL_ALGO": value})).snapshot
    assert redact(taken).get(Environment).get("NCCL_ALGO") == value


WORDS = ("install", "pip", "sudo", "torch", "purge", "show", "index", "update", "python", "driver",
         "systemctl", "reboot", "gpucheck", "whl", "list", "export", "uninstall", "restart", "the",
         "your", "version", "built", "loads", "driven", "slurm")  # fmt: skip


@each("word", WORDS, shards=2)
@each("name", ["forward-compat-r535-cu130", "nouveau-no-driver", "cpu-build-with-gpu"])
def test_words_and_commands_of_gpucheck_stay(name: str, word: str) -> None:
    """Whoever has the name of one of its words: a name changes values, and nothing else."""
    usual = _said(name, "qx7zkw")
    assert usual
    assert _said(name, word) == usual


@functools.cache
def _said(machine: str, user: str) -> list[object]:
    report = public(judge_machine(_named(_collected(machine), user), TABLES))
    return [(each.headline, each.fixes) for each in report.findings]


@functools.cache
def _collected(name: str) -> Snapshot:
    host = machine_files.host(name)
    return Collector(host, TABLES, wish=TargetWish(), request=Request()).collect().snapshot


def _named(snapshot: Snapshot, user: str) -> Snapshot:
    system = msgspec.structs.replace(snapshot.get(System), user=user, hostname=user)
    return snapshot.with_section(system)


def test_commands_of_a_bundle_stay() -> None:
    def commands(host: str) -> list[str]:
        named = {f"r{at}": {"host": host} for at in (0, 1)}
        ranks = samples.ranks(2, 2, **named)  # type: ignore[arg-type]  # fields of many types
        found = samples.result(ranks, samples.culprit("rank-hangs", ranks[3], "x"))
        report = Public(found).result().report
        return [
            command for each in report.findings for fix in each.fixes for command in fix.commands
        ]

    usual = commands("qx7zkw")
    words = set(re.findall(r"\b[a-z]{3,}\b", " ".join(usual))) | {"install", "pip"}
    assert {"srun", "scontrol"} < words
    assert [word for word in words if commands(word) != usual] == []


def _preflight(line: str) -> Result:
    """A pre-flight that shows a line of others wherever it can show one."""
    look = Look(state="stopped", python=(line[:300],), error=line[:300])
    ranks = samples.ranks(2, 2, r1={"status": "crashed", "detail": line, "look": look})
    return samples.result(
        ranks,
        samples.culprit("rank-crashed", ranks[1], line),
        notices=[line], step_notes=[line], stopped_because=line, inconclusive=line,
    )  # fmt: skip


@each(
    ("line", "private"), [*LINES, *WHOLE_LINES, *MORE_LINES, *OF_PROGRAMS, *OF_SCHEDULERS], shards=4
)
def test_the_files_of_a_preflight(line: str, private: list[str]) -> None:
    """A bundle tells nothing; of what others said, metrics and records have nothing anyway."""
    result = _preflight(line)
    of_step = RankResult(rank=1, status="crashed", phase="alone", kind="signal", detail=line,
                         data={"printed": line, "nccl_warnings": [line]})  # fmt: skip
    step = Step(
        number=0, kind="alone", groups=((0, 1, 2, 3),), backend="gloo", seconds=9.0,
        env={"NCCL_NET": line},
    )  # fmt: skip
    packed, _said = bundle("x.zip", result, [StepResult(step=step, results={1: of_step})])
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    assert len(files) == 5
    files |= {
        "metrics": preflight_metrics.render(result),
        "record": preflight_record.run_record(result),
    }
    for name, text in files.items():
        assert _left(re.sub(r"\\u[0-9a-f]{4}", "", text), private) == [], name
