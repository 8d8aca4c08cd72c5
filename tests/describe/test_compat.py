import json
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result
from each import each

from gpucheck.cli import gpucheck
from gpucheck.describe.judge import WhatIf, judge_described
from gpucheck.describe.keys import ALIASES, KEYS, GivenError, read_object, read_words
from gpucheck.engine import sections_behind
from gpucheck.facts.snapshot import all_sections
from gpucheck.findings import all_rules
from gpucheck.findings.form import Outcome
from gpucheck.programs.schema import schema
from gpucheck.tables import Tables

TABLES = Tables()
CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "compat_cases.jsonl").read_text().splitlines()
]
ROOT = Path(__file__).parents[2]
# A value for each key that a described machine could have.
ANY_VALUE = {
    "action": "run", "os": "linux", "arch": "x86_64", "glibc": "2.35", "driver": "535.104.05",
    "driver_cuda": "12.2", "kernel_module": "open", "gpu": "GeForce RTX 4090",
    "compute_capability": "8.9", "gpu_count": "1", "board": "Jetson AGX Orin", "jetpack": "6.1",
    "torch": "2.6.0", "torch_source": "pypi", "python": "3.12", "numpy": "2.1.0",
    "torchvision": "0.21.0", "torchaudio": "2.6.0", "triton": "3.2.0",
    "cudnn_compiled": "9.1.0.70", "cudnn_runtime": "9.1.0", "cudnn_soname_needed": "libcudnn.so.9",
    "cudnn_sonames_found": "libcudnn.so.8,libcudnn.so.9",
    "nvidia_packages": "nvidia-cudnn-cu12==9.1.0.70,nvidia-nccl-cu12==2.21.5", "cuda": "12.4",
    "packages": "vllm==0.33.0,xformers==0.0.35",
    "nccl": "2.21.5", "gpu_kind": "geforce", "nvcc": "12.4", "gcc": "13.2", "clang": "18",
    "msc_ver": "1940", "extension.name": "flash_attn", "extension.built_with_cuda": "12.4",
    "extension.code": "sm_80,compute_90", "extension.cubins": "sm_80", "container": "docker",
    "cuda_compat": "12.8", "cuda_compat_active": "false", "cuda_error": "0", "nvml_error": "0",
    "xid": "31", "nvswitch": "true", "compute_mode": "default", "other_processes": "0",
    "driver_package_installed": "true", "nvidia_module_loaded": "true",
    "row_remap_pending": "false", "row_remap_failure": "no",
}  # fmt: skip


def judged(*words: str) -> WhatIf:
    return judge_described(read_words(words), TABLES)


def run(*args: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(gpucheck, ["compat", *args], input=stdin)


def outcome(found: WhatIf, slug: str) -> tuple[Outcome, str]:
    check = next(check for check in found.report.checks if check.slug == slug)
    return check.outcome, check.reason


@each("case", CASES, ids=[f"{case['id']} {case['why']}" for case in CASES], shards=2)
def test_case(case: dict[str, Any]) -> None:
    found = judge_described(read_object(case["facts"]), TABLES)
    assert (found.report.verdict, list(found.report.root_causes)) == (
        case["verdict"],
        case["root_causes"],
    )
    assert not [check for check in found.report.checks if check.outcome is Outcome.CRASHED]


def test_half_of_the_cases_are_healthy() -> None:
    healthy = [case for case in CASES if case["verdict"] == "healthy"]
    assert len(CASES) >= 150
    assert len(healthy) * 2 >= len(CASES)
    assert len({case["id"] for case in CASES}) == len(CASES)


def test_every_key_is_read_alone_and_as_absent() -> None:
    assert set(ANY_VALUE) == set(KEYS)
    for name, value in ANY_VALUE.items():
        for word in (f"{name}={value}", f"{name}=none"):
            found = judged(word)
            assert found.report.verdict in ("healthy", "unknown", "broken", "warning")
            outcomes = {check.outcome for check in found.report.checks}
            assert Outcome.CRASHED not in outcomes, word


def test_aliases_mean_the_key() -> None:
    assert read_words(["toolkit=12.4", "cudnn=9.1.0"]) == {
        "nvcc": ["12.4"],
        "cudnn_runtime": ["9.1.0"],
    }
    assert set(ALIASES.values()) <= set(KEYS)


def test_every_field_of_a_key_is_one_of_a_section() -> None:
    sections = all_sections()
    for key in KEYS.values():
        for field in key.fields:
            section, name, *_ = field.split(".")
            assert name in sections[section].__struct_fields__, field


def test_the_page_of_the_keys_is_up_to_date() -> None:
    written = (ROOT / "docs" / "describe" / "facts.md").read_text(encoding="utf-8")
    page = runpy.run_path(str(ROOT / "tools" / "keys_page.py"))["page"]
    assert written == page(), "python tools/keys_page.py > docs/describe/facts.md"


def test_every_key_is_looked_at_by_a_finding_that_rests_on_its_facts() -> None:
    looked_at = {name for rule in all_rules().values() for name in rule.compat_keys}
    assert looked_at == set(KEYS)
    for rule in all_rules().values():
        behind = {section.name for section in sections_behind(rule)}
        for name in rule.compat_keys:
            assert behind & {field.partition(".")[0] for field in KEYS[name].fields}, rule.slug


def test_a_rule_whose_facts_were_not_given_is_not_applicable() -> None:
    found = judged("torch=2.6.0", "os=linux")
    for slug in ("gpu-too-new-for-torch", "driver-too-old", "numpy-abi-mismatch"):
        what, reason = outcome(found, slug)
        assert (what, reason[:9]) == (Outcome.NOT_APPLICABLE, "not given")
    assert found.report.verdict == "healthy"


def test_a_given_value_that_no_table_has_is_unknown_and_said() -> None:
    found = judged("gpu=GeForce RTX 9090", "torch=2.9.1", "os=linux")
    assert found.report.verdict == "unknown"
    assert "GeForce RTX 9090" in found.report.open_questions[0].reason


def test_the_default_build_follows_source_and_platform() -> None:
    def build(*words: str) -> tuple[str | None, str | None]:
        torch = judged("torch=2.9.1", *words).report.snapshot.as_json()["facts"]["torch"]
        return torch["built_for"], torch["cuda"]

    assert build("os=linux") == ("cuda", "12.8")
    assert build("os=linux", "arch=aarch64") == ("cpu", "")
    assert build("os=windows") == ("cpu", "")
    assert build("os=macos") == ("cpu", "")
    assert build("os=linux", "torch_source=conda-forge") == (None, None)
    assert build("os=linux", "cuda=13.0") == ("cuda", "13.0")


def test_what_was_given_is_evidence() -> None:
    found = judged("os=linux", "driver=470.82", "torch=2.6.0", "gpu=GTX 1080")
    finding = found.report.standing[0]
    assert finding.slug == "driver-too-old"
    assert ("470.82", "as given: driver=470.82") in [(e.value, e.source) for e in finding.evidence]


def test_partial_names_find_the_product() -> None:
    for name in (
        "RTX 4090",
        "RTX 4090 24GB",
        "NVIDIA GeForce RTX 4090",
        "geforce rtx 4090",
        "GeForce-RTX-4090",
    ):
        gpu = judged(f"gpu={name}").report.snapshot.as_json()["facts"]["pci"]["gpus"][0]
        assert gpu["compute_capability"] == "8.9"


def test_what_no_check_looks_at_is_listed() -> None:
    found = judged("torch=2.9.1", "python=3.12", "cuda_error=209")
    assert set(found.not_judged) == {"cuda_error"}
    shown = run("torch=2.9.1", "cuda_error=209").output
    assert "Not judged by this version: cuda_error (" in shown


@each(
    ("words", "cause"),
    [
        ("nvcc=11.7 compute_capability=8.9", "toolkit-gpu-unsupported"),
        ("torch=2.9.1 nvcc=13.0 compute_capability=8.9", "toolkit-torch-mismatch"),
        ("torch=2.9.1 nvcc=12.8 gcc=15.1", "host-compiler-unsupported"),
        ("torch=2.9.1 nvcc=12.8 clang=21 gcc=none", "host-compiler-unsupported"),
        ("torch=2.9.1 nvcc=12.8 msc_ver=1960 os=windows", "host-compiler-unsupported"),
        ("torch=2.9.1 gcc=none", "compiler-missing"),
        ("torch=2.9.1 nvcc=none", "toolkit-missing"),
        ("torch=2.9.1 nvcc=12.8 gcc=13.2 compute_capability=12.0", None),
        ("torch=2.9.1+cpu gcc=15.1", None),
    ],
)
def test_what_a_build_needs_counts_where_something_is_built(words: str, cause: str | None) -> None:
    given = words.split()
    built = judged(*given, "action=build-extension").report
    assert built.root_causes == ((cause,) if cause else ())
    assert built.verdict == ("broken" if cause else "healthy")
    assert judged(*given).report.verdict == "healthy"


@each(
    ("words", "cause"),
    [
        ("extension.built_with_cuda=11.8", "extension-abi-mismatch"),
        ("extension.built_with_cuda=12.4", None),
        ("extension.code=sm_80,sm_90", "extension-gpu-unsupported"),
        ("extension.cubins=8.0,9.0", "extension-gpu-unsupported"),
        ("extension.code=sm_80,compute_90", None),
        ("extension.cubins=sm_90 extension.code=sm_120", None),
        ("", None),
    ],
)
def test_a_described_extension(words: str, cause: str | None) -> None:
    machine = ("torch=2.9.1+cu128", "gpu=GeForce RTX 5090", "extension.name=flash_attn")
    report = judged(*machine, *words.split()).report
    assert report.root_causes == ((cause,) if cause else ())


@each(
    ("words", "verdict"),
    [
        ("driver=535.104.05 extension.code=compute_80 extension.built_with_cuda=12.8", "broken"),
        ("driver=535.104.05 extension.code=compute_70 extension.built_with_cuda=12.3", "broken"),
        ("driver=535.104.05 extension.code=compute_80 extension.built_with_cuda=12.2", "healthy"),
        ("driver=535.104.05 extension.code=sm_80,compute_80 extension.built_with_cuda=12.8",
         "healthy"),
        ("driver=570.86.15 extension.code=compute_80 extension.built_with_cuda=12.8", "healthy"),
        ("driver=535.104.05 extension.code=compute_80", "healthy"),
    ],
)  # fmt: skip
def test_a_driver_refuses_ptx_of_a_newer_toolkit(words: str, verdict: str) -> None:
    machine = ("torch=2.9.1+cu128", "gpu=A100", "extension.name=acme", *words.split())
    report = judged(*machine).report
    assert report.verdict == verdict
    assert report.root_causes == (("driver-too-old",) if verdict == "broken" else ())


@each("runtime", ["nvidia-cuda-runtime==13.0.96", "nvidia-cuda-runtime-cu13==13.0.96"])
def test_an_extension_whose_cuda_runtime_is_given_is_not_blamed(runtime: str) -> None:
    words = ("torch=2.9.1+cu128", "extension.name=x", "extension.built_with_cuda=13.0")
    report = judged(*words, f"nvidia_packages={runtime}").report
    assert "extension-abi-mismatch" not in report.root_causes


def test_a_cuda_extension_beside_a_cpu_build_is_named() -> None:
    report = judged("torch=2.9.1+cpu", "extension.name=x", "extension.built_with_cuda=12.4").report
    assert report.root_causes == ("extension-abi-mismatch",)


@each(
    ("words", "sentence"),
    [
        (["colour=red"], "'colour' is not a key. The keys are action, os,"),
        (["driver"], "'driver' is not KEY=VALUE: write driver=VALUE."),
        (["driver=new"], "driver takes a driver release such as 535.104.05, not 'new'."),
        (["driver="], "driver has no value"),
        (["os=beos"], "os takes one of linux, windows, wsl2, macos, not 'beos'."),
        (["driver=1.2", "driver=1.3"], "driver is given twice"),
        (["gpu=T4,L4", "compute_capability=7.5"], "gpu has 2 values and compute_capability has 1"),
        (["gpu=T4,L4", "gpu_count=3"], "gpu_count is 3, but 2 GPUs are named."),
        (["gpu=T4", "gpu_count=0"], "gpu and gpu_count contradict each other"),
        (["torch=2.6.0+cu124", "cuda=12.6"], "name different builds"),
        (["cuda_error=cudaErrorOfMine"], "not a known name"),
        (["gpu=" + "A" * 300], "gpu takes a product name"),
        (["torch=2.6.0\x1b[31m"], "torch takes a version"),
    ],
)
def test_a_bad_word_is_one_sentence(words: list[str], sentence: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())
    assert "\x1b" not in result.output
    assert "Traceback" not in result.output


def test_a_number_that_loses_its_zero_is_refused() -> None:
    with pytest.raises(GivenError, match=r"python must be a string"):
        read_object({"python": 3.1})
    assert read_object({"compute_capability": [8.9, 8.6]}) == {"compute_capability": ["8.9", "8.6"]}


def test_extension_may_be_an_object() -> None:
    assert read_object({"extension": {"name": "apex", "code": ["sm_80"]}}) == {
        "extension.name": ["apex"],
        "extension.code": ["sm_80"],
    }


@each("facts", [[], "driver", 3, {"gpu": {"a": 1}}, {"driver": [["x"]]}])
def test_facts_that_are_none(facts: object) -> None:
    with pytest.raises(GivenError):
        read_object(facts)


def test_exit_statuses() -> None:
    assert run("torch=2.9.1", "driver=535.104.05", "gpu=L4").exit_code == 0
    assert run("torch=2.9.1", "driver=470.82", "gpu=L4").exit_code == 1
    assert run("torch=2.9.1", "driver=470.82", "--fail-on", "never").exit_code == 0
    assert run("torch=2.2.2", "numpy=2.0.0").exit_code == 0
    assert run("torch=2.2.2", "numpy=2.0.0", "--fail-on", "warning").exit_code == 1
    assert run("torch=2.99.0").exit_code == 3
    assert run().exit_code == 2


def test_json_is_a_report_with_what_was_not_judged() -> None:
    words = ("torch=2.9.1", "python=3.12", "cuda_error=209")
    report = json.loads(run(*words, "--format", "json").output)
    jsonschema.Draft202012Validator(schema("report")).validate(report)
    assert report["snapshot"]["origin"] == "described"
    assert "cuda_error" in report["not_judged"]


def test_markdown_and_quiet() -> None:
    words = ("torch=2.9.1", "driver=470.82", "gpu=L4")
    assert run(*words, "--format", "markdown").output.startswith("**BROKEN**")
    assert "driver-too-old" in run(*words, "-q").output


def test_facts_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    file.write_text(json.dumps({"torch": "2.9.1", "driver": "470.82", "gpu": None}))
    assert run("--facts", str(file)).exit_code == 1
    # A key on the command line replaces that of the file.
    assert run("--facts", str(file), "driver=535.104.05", "gpu=L4").exit_code == 0
    file.write_bytes(b" " * (1024 * 1024 + 1))
    assert "larger than 1 MiB" in run("--facts", str(file)).output
    file.write_text("{")
    assert "is not JSON" in " ".join(run("--facts", str(file)).output.split())
    file.write_text("[" * 100_000)
    assert run("--facts", str(file)).exit_code == 2
    assert run("--facts", str(tmp_path / "none.json")).exit_code == 2


def test_a_batch_answers_every_line(tmp_path: Path) -> None:
    file = tmp_path / "batch.jsonl"
    file.write_bytes(
        b'{"id": "a", "facts": {"torch": "2.6.0", "driver": "470.82"}}\n'
        b"\n"
        b'{"id": 2, "facts": {"torch": "2.6.0", "driver": "535.54.03"}}\n'
        b"no json \xff\n"
        b'{"id": "c", "facts": {"colour": 1}}\n'
        b'{"id": ["x"], "facts": {}}\n'
        b"[1]\n" + b"[" * 50_000 + b"\n" + b" " * (1024 * 1024 + 5) + b"x\n"
        b'{"id": "z", "facts": {"torch": "2.99.0"}}'
    )
    result = run("--batch", str(file))
    assert result.exit_code == 0
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    for answer in answers:
        jsonschema.Draft202012Validator(schema("batch-line")).validate(answer)
    assert answers[0] == {
        "id": "a",
        "verdict": "broken",
        "root_causes": ["driver-too-old"],
        "confidence": "certain",
    }
    assert [answer["id"] for answer in answers] == ["a", 2, None, "c", None, None, None, None, "z"]
    assert [("error" in answer) for answer in answers] == [
        False, False, True, True, False, True, True, True, False,
    ]  # fmt: skip
    assert answers[-1]["verdict"] == "unknown"


def test_a_batch_takes_no_words(tmp_path: Path) -> None:
    file = tmp_path / "batch.jsonl"
    file.write_text("")
    assert run("--batch", str(file), "torch=2.9.1").exit_code == 2
    assert run("--batch", str(file)).stdout == ""
    assert run("--batch", str(tmp_path / "none")).exit_code == 2


@each(
    "words",
    [
        ("torch=2.5.1", "torch_source=conda-forge", "gpu=RTX 5090", "driver=570.86.15"),
        ("torch=2.5.1", "gpu=RTX 4090"),
    ],
)
def test_a_build_that_was_not_judged_is_not_said_to_work(words: tuple[str, ...]) -> None:
    printed = run("os=linux", *words).stdout
    assert printed.startswith("HEALTHY  Nothing in the given facts shows a problem.")


def test_a_build_that_was_judged_is_said_to_work() -> None:
    printed = run("os=linux", "torch=2.5.1", "gpu=RTX 4090", "driver=550.54.15").stdout
    assert printed.startswith("HEALTHY  PyTorch 2.5.1 fits GeForce RTX 4090")


@each("xid", ["48", "79"])
@each("gpu", [(), ("gpu=A100", "driver=550.54.15")])
def test_an_xid_invents_neither_address_nor_time(xid: str, gpu: tuple[str, ...]) -> None:
    headline = judged(f"xid={xid}", *gpu).report.standing[0].headline
    assert "PCI" not in headline
    assert "ago" not in headline


def test_a_process_that_nobody_named_is_another_process() -> None:
    words = ("compute_mode=exclusive-process", "other_processes=1", "gpu=A100")
    finding = judged(*words).report.standing[0]
    assert "held by another process" in finding.headline
    assert "None" not in json.dumps([[fix.text, *fix.commands] for fix in finding.fixes])


def test_a_mig_slice_is_its_gpu() -> None:
    found = judged("gpu=NVIDIA A100-SXM4-40GB MIG 3g.20gb", "torch=2.5.1", "driver=550.54.15")
    gpu = found.report.snapshot.as_json()["facts"]["pci"]["gpus"][0]
    assert gpu["compute_capability"] == "8.0"
    assert gpu["product"].endswith("MIG 3g.20gb")
    assert found.report.verdict == "healthy"


@each(
    "words",
    [
        ("driver=510.39.01", "gpu=A100"),  # a branch that no source of the table has for it
        ("driver=470.57.02", "gpu=RTX A6000"),  # a kind of GPU that it does not decide
    ],
)
def test_a_compat_library_that_no_table_knows_is_no_old_driver(words: tuple[str, ...]) -> None:
    loaded = ("os=linux", "torch=2.5.1", "cuda_compat=12.4", "cuda_compat_active=true")
    found = judged(*loaded, *words)
    assert (found.report.verdict, found.report.root_causes) == ("unknown", ())
    assert outcome(found, "driver-too-old")[0] is Outcome.UNKNOWN
    without = judged("os=linux", "torch=2.5.1", *words)
    assert list(without.report.root_causes) == ["driver-too-old"]


@each(
    "words",
    [
        ("gpu=RTX 4090", "compute_capability=8.6"),
        ("gpu=A100", "gpu_kind=geforce"),
        ("gpu=GeForce RTX 4090", "gpu_kind=data-center"),
        ("os=windows", "glibc=2.35"),
        ("os=macos", "glibc=2.35"),
    ],
)
def test_what_contradicts_itself_is_a_usage_error_that_names_both(words: tuple[str, str]) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert "contradict each other" in done.stderr
    assert all(word in done.stderr for word in words)


@each(
    "words",
    [
        ("gpu=RTX 4090", "compute_capability=8.9"),
        ("gpu=GT 730", "compute_capability=2.1"),  # sold with two chips
        ("gpu=Voodoo 2", "compute_capability=8.6"),
        ("gpu=A100", "gpu_kind=data-center"),
        ("gpu=RTX PRO 6000 Blackwell Server Edition", "gpu_kind=workstation"),
        ("os=windows", "glibc=none"),
        ("os=wsl2", "glibc=2.35"),
    ],
)
def test_what_may_be_so_is_no_contradiction(words: tuple[str, str]) -> None:
    assert run(*words).exit_code != 2


def test_whether_so_old_a_driver_drives_the_gpu_is_left_open() -> None:
    """Turing has no sourced first branch; branch 390 is older than its first compiler."""
    found = judged("gpu=RTX 2080 Ti", "driver=390.157")
    assert found.report.verdict == "unknown"
    assert "do not say whether driver 390.157 supports" in found.report.open_questions[0].reason
    assert judged("gpu=RTX 2080 Ti", "driver=410.48").report.verdict == "healthy"


def test_the_cuda_that_a_driver_speaks_tells_what_it_does_not_drive() -> None:
    found = judged("gpu=RTX 5090", "driver_cuda=12.4", "torch=2.9.1+cu128")
    assert found.report.root_causes == ("driver-too-old",)
    assert judged("gpu=RTX 5090", "driver_cuda=12.8").report.verdict == "healthy"


def test_no_device_in_a_container() -> None:
    for more in ((), ("gpu=A100", "driver=580.65.06", "torch=2.9.1")):
        found = judged("container=docker", "cuda_error=100", *more)
        assert found.report.root_causes == ("container-no-gpu",)
    assert judged("cuda_error=100", "gpu=A100", "driver=580.65.06").report.verdict == "unknown"
    without = judged("container=docker", "cuda_error=100", "gpu=none")
    assert without.report.root_causes == ("no-nvidia-gpu",)
