"""From where the tables have what decided a finding: in the report, on its page, in explain."""

import re

import msgspec
import pytest
import test_machines
from click.testing import CliRunner
from each import each

from gpucheck import cli
from gpucheck.engine.ask import tables_behind
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding, TableSource
from gpucheck.output.html import report as page
from gpucheck.programs.functions import compat


def sources(machine: str, slug: str) -> tuple[TableSource, ...]:
    found = test_machines.reported(machine).standing
    return next(finding.table_sources for finding in found if finding.slug == slug)


def names(slug: str) -> set[str]:
    return {table.name for table in tables_behind(all_rules()[slug])}


@each(
    "machine, slug, fact, table",
    [
        ("a100-mig-instance", "driver-branch-end-of-life", "nvml.driver_release",
         "driver_branches"),
        ("blackwell-proprietary-modules", "driver-dropped-gpu", "pci.gpus.0.compute_capability",
         "gpu_architectures"),
        ("rtx5090-cu124", "gpu-too-new-for-torch", "torch.version", "torch_builds"),
    ],
)  # fmt: skip
def test_a_fact_has_the_sources_of_its_row(machine: str, slug: str, fact: str, table: str) -> None:
    found = [source for source in sources(machine, slug) if source.fact == fact]
    assert found
    kind = next(kind for kind in tables_behind(all_rules()[slug]) if kind.name == table)
    known = map(msgspec.structs.astuple, test_machines.TABLES.get(kind).sources.values())
    assert {source.table for source in found} == {table}
    assert {(source.title, source.read, source.url) for source in found} <= {*known}


COMPAT = {
    "packages=vllm==0.33.0 torch=2.9.1 gpu=H100": ("package-pin-conflict", "extensions"),
    "torch=2.9.1 python=3.7": ("torch-python-unsupported", "torch_releases"),
    "cuda_error=700 xid=31 gpu=H100": ("application-bug", "cuda_errors", "xid"),
    "xid=48 gpu=H100": ("gpu-hardware-fault", "xid"),
    "torch=2.9.1 gcc=8 action=build-extension nvcc=12.8 gpu=H100":
        ("host-compiler-unsupported", "host_compilers"),
    "torch=2.13.0 gcc=9 action=build-extension nvcc=12.8 gpu=H100":
        ("host-compiler-unsupported", "host_compilers"),
    "torch=2.9.1 gcc=15 action=build-extension nvcc=12.4 gpu=H100":
        ("host-compiler-unsupported", "host_compilers"),
    "torch=2.9.1 nvcc=12.8 msc_ver=1900 os=windows action=build-extension gpu=H100":
        ("host-compiler-unsupported", "host_compilers"),
    "torch=2.9.1 nvcc=12.4 gcc=9 action=build-extension gpu=B200":
        ("toolkit-gpu-unsupported", "gpu_architectures", "toolkit_targets"),
    "torch=2.9.1 cudnn_compiled=9.10.2 cudnn_runtime=8.9.7 gpu=H100":
        ("cudnn-version-mismatch", "cudnn_rules"),
    "torch=2.9.1 cudnn_runtime=9.1.0 gpu=H100": ("cudnn-version-mismatch", "cudnn_rules"),
    "torch=2.9.1 nvidia_packages=nvidia-cudnn-cu12==9.1.0.70 gpu=H100":
        ("nvidia-wheel-mismatch", "cudnn_rules"),
    "torch=2.5.1 nccl=2.25.1 gpu=H100": ("nccl-version-mismatch", "nccl"),
    "cuda_compat_active=true gpu=H100 cuda_error=804":
        ("forward-compat-unsupported", "cuda_errors", "forward_compat", "gpu_products"),
    "torch=2.9.1 glibc=2.17": ("system-library-too-old", "torch_releases"),
    "torch=2.9.1 torchvision=0.20.0": ("torch-companion-mismatch", "torch_companions"),
    "extension.name=flash_attn extension.cubins=sm_80 gpu=T4 torch=2.9.1":
        ("extension-gpu-unsupported", "cubin_rules", "gpu_architectures"),
}  # fmt: skip
"""Descriptions, each with a finding and the tables that decide it."""

BY_FACTS = {
    "container.runtime", "driver.libcuda", "pci.gpus.bound_driver",
    "extensions.extensions.missing_libraries", "extensions.extensions.missing_symbols",
    "extensions.extensions.nowhere", "kernel_log.fallen_off_bus", "loading.missing",
    "loading.runtime_opened.version", "nvidia_wheels.damaged",
    "nvidia_wheels.nccl_functions_missing", "nvidia_wheels.pins", "nvidia_wheels.shared",
    "nvml.gpus.compute_mode", "nvml.gpus.rows_failed", "packages.distributions",
    "packages.distributions.requirements.nvidia-cudnn-cu12",
    "packages.distributions.requirements.torch", "selftests.results.data.control", "system.libc",
    "toolkits.compilers", "toolkits.python_headers", "toolkits.selected", "torch.built_for",
    "torch.wheel_tag", "wheel_hashes.altered",
}  # fmt: skip
"""Facts that prove something by themselves: a file, a package's own metadata, a driver's word."""
NO_ROW = {"newer-than-tables", "selftest-failed"}
"""That a table has no row has no source; nor has the failure of a test that names no error."""


def described(words: str) -> dict[str, Finding]:
    pairs = (word.partition("=") for word in words.split())
    report = compat({key: value for key, _equals, value in pairs})
    return {finding.slug: finding for finding in report.findings}


@each("words", COMPAT)
def test_the_tables_that_decide_have_their_sources(words: str) -> None:
    slug, *wanted = COMPAT[words]
    finding = described(words)[slug]
    assert {source.table for source in finding.table_sources} >= {*wanted}
    assert {source.fact for source in finding.table_sources} <= {
        evidence.fact for evidence in finding.evidence
    }


@pytest.mark.exhaustive
@each("name", test_machines.NAMES)
def test_a_finding_whose_check_reads_tables_has_their_sources_or_a_proof(name: str) -> None:
    for finding in test_machines.reported(name).findings:
        shown = {evidence.fact for evidence in finding.evidence}
        assert {source.fact for source in finding.table_sources} <= shown
        if names(finding.slug) and not finding.table_sources and finding.slug not in NO_ROW:
            facts = {re.sub(r"\.[0-9]+(?=\.|$)", "", fact) for fact in shown}
            assert facts & BY_FACTS, f"{finding.slug} has no source for {sorted(facts)}"


def test_the_error_of_a_selftest_has_the_sources_of_its_row() -> None:
    for slug, table in (
        ("cudnn-runtime-failure", "library_errors"), ("selftest-failed", "cuda_errors")
    ):  # fmt: skip
        machine = {"library_errors": "selftest-cudnn-fails", "cuda_errors": "force-ptx-jit"}[table]
        found = test_machines.reported(machine).findings
        of_slug = next(finding.table_sources for finding in found if finding.slug == slug)
        assert {source.table for source in of_slug} == {table}


def test_what_no_table_judges_has_no_sources() -> None:
    assert sources("ecc-rowremap-failed", "gpu-hardware-fault") == ()


def test_tables_of_a_fix_do_not_judge() -> None:
    assert "driver_branches" in names("driver-branch-end-of-life")
    assert "torch_builds" in names("gpu-too-new-for-torch")
    assert names("torch-missing") == set()


def test_the_page_names_title_address_and_day() -> None:
    text = page.render(test_machines.reported("rtx5090-cu124"))
    assert "Where the tables have it from" in text
    known = [source for source in sources("rtx5090-cu124", "gpu-too-new-for-torch") if source.url]
    assert known
    assert known[0].title in text
    assert known[0].url in text
    assert f"read on {known[0].read}" in text


def test_explain_names_the_tables_and_with_v_their_sources() -> None:
    for more in ([], ["-v"]):
        done = CliRunner().invoke(cli.gpucheck, ["explain", "driver-branch-end-of-life", *more])
        assert done.exit_code == 0, done.output
        said = " ".join(done.output.split())
        assert "It is judged by these tables:" in said
        assert ("Sources of driver_branches:" in said) is bool(more)
        address = "https://github.com/NVIDIA/gpu-driver-container/pull/381; read on"
        assert (address in said) is bool(more)
