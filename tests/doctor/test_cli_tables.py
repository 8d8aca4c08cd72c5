"""``gpucheck tables`` as a user meets it."""

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from each import each
from index_server import Reply, Served, index_of, page

from gpucheck import cli
from gpucheck.machine.package_index import IndexSettings
from gpucheck.output.table_text import _compared
from gpucheck.tables import Tables, tables_dir
from gpucheck.tables.check import all_tables
from gpucheck.tables.error_codes import Xids


def run(*args: str) -> Result:
    return CliRunner().invoke(cli.gpucheck, ["tables", *args])


def as_json(*args: str) -> Any:  # noqa: ANN401  # rows, changes or problems
    return json.loads(run(*args, "--format", "json").stdout)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for file in tables_dir().glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def edit(folder: Path, table: str, before: str, after: str) -> None:
    file = folder / f"{table}.json"
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after, 1), encoding="utf-8")


def test_the_list_has_every_table_with_version_and_date() -> None:
    found = as_json("show")
    assert [table["name"] for table in found["tables"]] == sorted(all_tables())
    assert all(table["rows"] > 0 for table in found["tables"])
    text = run("show").stdout
    assert found["version"] in text
    assert found["date"] in text
    assert all(name in text for name in all_tables())


@each("name", sorted(all_tables()))
def test_every_table_can_be_shown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each command checks all tables first, which other tests look at.
    monkeypatch.setattr("gpucheck.doctor.commands.tables.refuse_broken", lambda _tables: None)
    done = run("show", name)
    assert done.exit_code == 0
    assert done.stdout.rstrip().endswith("rows")
    assert "None" not in done.stdout.split("\n")[0]


def test_rows_are_filtered_by_columns_and_items_of_lists() -> None:
    (row,) = as_json("show", "driver_branches", "branch=535")["rows"]
    assert row["cuda"] == "12.2"
    rows = as_json("show", "torch_builds", "platform=windows", "arch_list=sm_120")["rows"]
    assert rows
    assert all(r["platform"] == "windows" and "sm_120" in r["arch_list"] for r in rows)
    unconfirmed = as_json("show", "torch_builds", "confirmed=false")["rows"]
    assert unconfirmed
    assert all(row["confirmed"] is False for row in unconfirmed)
    confirmed = as_json("show", "torch_builds", "confirmed=yes")["rows"]
    assert len(confirmed) + len(unconfirmed) == len(as_json("show", "torch_builds")["rows"])


def test_the_text_is_aligned_and_v_adds_the_sources() -> None:
    head, *lines = run("show", "driver_branches", "kind=LTSB").stdout.splitlines()
    at = head.index("cuda")
    rows = [line for line in lines if line[:3].isdigit()]
    assert rows
    assert all(line[at - 1] == " " and line[at] != " " for line in rows)
    assert "source: " not in "\n".join(lines)
    assert "source: " in run("show", "driver_branches", "kind=LTSB", "-v").stdout


def test_no_row_is_no_fault() -> None:
    done = run("show", "driver_branches", "branch=1")
    assert done.exit_code == 0
    assert done.stdout.startswith("0 of ")


@each(
    ("args", "words"),
    [
        (("show", "nonsense"), "There is no table 'nonsense'. There are bus_bandwidth, chips"),
        (("show", "xid", "nonsense=1"), "with a column of this table"),
        (("show", "xid", "xid"), "not KEY=VALUE"),
        (("diff", "/nonsense"), "does not exist"),
        (("diff",), "Missing argument"),
        (("path", "--tables", "/nonsense"), "does not exist"),
        (("nonsense",), "No such command"),
    ],
)
def test_bad_usage(args: tuple[str, ...], words: str) -> None:
    done = run(*args)
    assert done.exit_code == 2
    assert words in done.stderr


def test_check() -> None:
    done = run("check")
    assert done.exit_code == 0
    assert done.stdout.endswith("no problems.\n")
    assert as_json("check")["problems"] == []


def test_check_names_the_row(copy: Path) -> None:
    edit(copy, "numpy2", '"rows": [\n  {', '"rows": [\n  {"nonsense": 1, ')
    done = run("check", "--tables", str(copy))
    assert done.exit_code == 1
    assert "numpy2.json, row 1" in done.stdout


def test_path(copy: Path) -> None:
    assert run("path").stdout == f"{tables_dir().resolve()}\n"
    assert run("path", "--tables", str(copy)).stdout == f"{copy.resolve()}\n"


def test_the_folder_may_be_named_before_the_command(copy: Path) -> None:
    def at(*args: str) -> Result:
        return CliRunner().invoke(cli.gpucheck, args)

    here, there = f"{copy.resolve()}\n", str(copy)
    assert at("--tables", there, "tables", "path").stdout == here
    assert at(f"--tables={there}", "tables", "path").stdout == here
    assert at("tables", "--tables", there, "path").stdout == here
    builtin = str(tables_dir())
    assert at("--tables", builtin, "tables", "--tables", there, "path").stdout == here
    assert at("--tables", builtin, "tables", "path", "--tables", there).stdout == here
    edit(copy, "numpy2", '"rows": [\n  {', '"rows": [\n  {"nonsense": 1, ')
    assert at("--tables", there, "tables", "check").exit_code == 1
    assert at("--tables", there, "compat", "torch=2.5.1").exit_code == 2


def test_a_folder_before_the_command_counts_more_than_the_variable(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUCHECK_TABLES", "/nonsense")
    done = CliRunner().invoke(cli.gpucheck, ["--tables", str(copy), "tables", "path"])
    assert done.stdout == f"{copy.resolve()}\n"


@each("args", [["--tables", "/nonsense"], ["--tables", "/nonsense", "-q"]])
def test_without_a_command_it_is_checks_option(args: list[str]) -> None:
    done = CliRunner().invoke(cli.gpucheck, args)
    assert done.exit_code == 2
    assert "does not exist" in done.stderr


def test_the_same_tables_do_not_differ(copy: Path) -> None:
    done = run("diff", str(copy))
    assert (done.exit_code, done.stdout) == (0, "No row differs.\n")


def test_diff_names_added_removed_and_changed_rows(copy: Path) -> None:
    edit(copy, "driver_branches", '"cuda": "12.2"', '"cuda": "12.3"')
    lines = (copy / "wheel_indexes.json").read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"cu113"' not in line]
    assert len(kept) == len(lines) - 1
    (copy / "wheel_indexes.json").write_text("".join(kept))
    done = run("diff", str(copy))
    assert done.exit_code == 1
    assert "~ 535 " in done.stdout
    assert "cuda: 12.2 -> 12.3" in done.stdout
    assert "- build=cu113" in done.stdout
    back = as_json("diff", str(tables_dir()), "--tables", str(copy))
    assert {change["change"] for change in back["changes"]} == {"added", "changed"}


@pytest.mark.parametrize("command", [("show",), ("show", "xid"), ("diff", "{here}")])
@pytest.mark.parametrize(
    ("table", "before", "after", "words"),
    [
        ("index", "gpucheck.tables/1", "gpucheck.tables/2", "has the schema"),
        ("driver_branches", '"branch": "390"', '"branch": 390', "row 1"),
        ("driver_branches", '"branch": "390", ', "", "row 1"),
        (
            "driver_branches",
            '"source": ["nvidia-forum',
            '"source": ["nobody',
            "row 1 has no source",
        ),
    ],
)
def test_a_broken_set_is_refused_with_the_row_named(
    copy: Path, command: tuple[str, ...], table: str, before: str, after: str, words: str
) -> None:
    edit(copy, table, before, after)
    args = [word.replace("{here}", str(tables_dir())) for word in command]
    done = run(*args, "--tables", str(copy))
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())
    assert table in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("compat", "torch=2.5.1"),
        ("recommend", "--gpu", "none", "--python-version", "3.12"),
        ("check", "--no-selftest"),
    ],
)
def test_no_judgement_rests_on_a_row_without_a_source(copy: Path, command: tuple[str, ...]) -> None:
    edit(copy, "chips", '"source": ["', '"source": ["nobody", "')
    done = CliRunner().invoke(cli.gpucheck, [*command, "--tables", str(copy)])
    assert done.exit_code == 2
    assert "chips.json, row 1 has no source or an unknown one: ['nobody']" in done.stderr


@each(
    ("table", "value", "near"),
    [
        ("torch_builds", "torch=2.9.1", "Similar values: 2.9."),
        ("torch_builds", "platform=linux", "linux_aarch64, linux_x86_64"),
        ("gpu_products", "product=RTX 4090", "Similar values: GeForce RTX 4090."),
        ("torch_builds", "torch=plenty", "No row has torch=plenty."),
    ],
)
def test_a_value_that_no_row_has_brings_the_near_ones(table: str, value: str, near: str) -> None:
    done = run("show", table, value)
    assert done.exit_code == 0
    assert f"No row has {value}" in done.stderr
    assert near in done.stderr
    assert done.stdout.startswith("0 of ")
    assert run("show", table, value, "-q").stderr == ""
    assert as_json("show", table, value)["rows"] == []


def test_a_value_that_rows_have_brings_no_hint() -> None:
    assert run("show", "torch_builds", "torch=2.9").stderr == ""


def test_a_hint_lets_no_escape_through() -> None:
    assert "\x1b" not in run("show", "torch_builds", "torch=\x1b[31m2.9").stderr


KNOWN = "torch-2.9.1-cp312-cp312-win_amd64.whl"


@pytest.fixture
def without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no pip: a fast test has no processes."""
    monkeypatch.setattr("gpucheck.machine.package_index.pip_settings", lambda _run: IndexSettings())


def against(served: Served, *more: str) -> Result:
    return run("check", "--against-index", "--index-url", served.address, *more)


@pytest.mark.usefixtures("without_pip")
def test_releases_that_the_tables_lack_are_named() -> None:
    def answer(path: str) -> Reply:
        project = path.split("/")[2]
        names = {"torch": (KNOWN, "torch-99.1.0-cp320-cp320-win_amd64.whl"), "triton": ()}
        return page(*names[project]) if project in names else (404, {}, b"")

    with index_of(answer) as served:
        done = against(served)
        data = json.loads(against(served, "--format", "json").stdout)
    assert done.exit_code == 1
    assert f"torch 99.1.0 is on {served.address} and not in the tables." in done.stdout
    assert data["index"]["unknown"]["torch"] == ["99.1.0"]
    assert data["index"]["unknown"]["triton"] == []
    assert data["index"]["problems"] == {}
    assert [path for path, _headers in served.asked][:2] == [
        "/simple/torch/",
        "/simple/torchvision/",
    ]


@pytest.mark.usefixtures("without_pip")
def test_without_an_index_of_pips_one_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        pytest.fail("an index was asked")

    monkeypatch.setattr("gpucheck.machine.package_index.read_page", refuse)
    done = run("check", "--against-index")
    assert done.exit_code == 2
    assert "Error: pip's configuration names no index: give --index-url URL\n" in done.stderr


@pytest.mark.usefixtures("without_pip")
def test_an_index_with_nothing_new_is_said_so() -> None:
    with index_of(lambda path: page(KNOWN) if "/torch/" in path else (404, {}, b"")) as served:
        done = against(served)
    assert done.exit_code == 0
    assert "has no release that the tables lack: torch, torchvision, torchaudio" in done.stdout


@pytest.mark.usefixtures("without_pip")
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ((404, {}, b""), "torch: the index answers with status 404."),
        ((200, {"Content-Type": "application/pdf"}, b"%PDF"), "neither the JSON nor the HTML"),
        (
            (200, {"Content-Type": "application/vnd.pypi.simple.v1+json"}, b"{\x1b[31m"),
            "not the JSON",
        ),
    ],
)
def test_an_index_that_answers_badly_is_one_sentence(reply: Reply, words: str) -> None:
    with index_of(lambda _path: reply) as served:
        done = against(served)
    assert done.exit_code == 2
    assert words in done.stdout
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) == 2
    assert len(served.asked) == 1


def test_the_network_is_used_only_where_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        pytest.fail("the index was asked")

    monkeypatch.setattr("gpucheck.machine.package_index.read_page", refuse)
    assert run("check").exit_code == 0
    done = run("check", "--index-url", "http://127.0.0.1:1/simple")
    assert done.exit_code == 2
    assert "--against-index" in done.stderr


def test_tables_with_problems_are_not_compared(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        pytest.fail("the index was asked")

    monkeypatch.setattr("gpucheck.machine.package_index.read_page", refuse)
    edit(copy, "triton", '"triton": "', '"tritium": "')
    assert run("check", "--against-index", "--tables", str(copy)).exit_code == 1


def test_thousands_of_rows_that_differ_are_paired_by_their_subject(copy: Path) -> None:
    xids = Tables(copy).get(Xids)

    def rows(name: str) -> Xids:
        row = partial(msgspec.structs.replace, xids.rows[0], short_name=name)
        return msgspec.structs.replace(xids, rows=tuple(row(xid=at) for at in range(6000)))

    begun = time.process_time()
    found = _compared("xids", rows("old"), rows("new"))
    assert time.process_time() - begun < 10
    assert len(found) == 6000
    assert {change.change for change in found} == {"changed"}
    assert all(
        change.before["xid"] == change.after["xid"]
        for change in found
        if change.before and change.after
    )
