"""From where the tables have what decided a finding: in the report, on its page, in explain."""

import msgspec
import test_machines
from click.testing import CliRunner
from each import each

from gpucheck import cli
from gpucheck.engine.ask import tables_behind
from gpucheck.findings import all_rules
from gpucheck.findings.form import TableSource
from gpucheck.output.html import report as page


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
