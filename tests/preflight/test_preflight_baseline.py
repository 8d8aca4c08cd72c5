"""The baseline file: atomic, bounded, believed only where it makes sense."""

import os
from pathlib import Path

import pytest
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st

from gpucheck.cluster.figures.baseline import (
    Baseline,
    RateBaselineError,
    SavedGpu,
    default_path,
    load,
    measured,
    save,
    with_news,
)

NOW = measured(
    [("GPU-1", "NVIDIA H200", {"fp16 TFLOP/s": 800.0, "copy GB/s": float("nan")}),
     (None, None, {"fp32 TFLOP/s": 0.1})],
    [(["GPU-2", "GPU-1"], 1 << 27, 400.0), ([None, "GPU-1"], 1 << 27, 400.0)],
    "2026-11-21",
)  # fmt: skip


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "state" / "gpucheck" / "baseline.json"
    assert load(file) == Baseline()
    save(file, NOW)
    assert load(file) == NOW
    assert [one.name for one in file.parent.iterdir()] == ["baseline.json"]
    assert file.stat().st_mode & 0o077 == 0


def test_only_what_can_be_found_again_is_saved() -> None:
    assert NOW.gpus == {
        "GPU-1": SavedGpu(model="NVIDIA H200", rates={"fp16 TFLOP/s": 800.0}, saved="2026-11-21")
    }
    assert list(NOW.groups) == ["GPU-1,GPU-2"]


def test_it_answers_for_the_same_gpus_only() -> None:
    assert NOW.of_gpu("GPU-1", "NVIDIA H200") is not None
    assert NOW.of_gpu("GPU-1", "NVIDIA A100") is None
    assert NOW.of_gpu(None, None) is None
    assert NOW.of_group(["GPU-1", "GPU-2"], 1 << 27) is not None
    assert NOW.of_group(["GPU-1", "GPU-2"], 1 << 28) is None
    assert NOW.of_group(["GPU-1"], 1 << 27) is None
    assert NOW.of_group([], 1 << 27) is None


def test_news_replace_what_is_old_and_leave_the_rest() -> None:
    old = Baseline(
        gpus={"GPU-1": SavedGpu(model="x", rates={}), "GPU-9": SavedGpu(model="y", rates={})}
    )
    both = with_news(old, NOW)
    assert set(both.gpus) == {"GPU-1", "GPU-9"}
    assert both.gpus["GPU-1"] == NOW.gpus["GPU-1"]
    full = Baseline(gpus={f"GPU-{n}": SavedGpu(model="x", rates={}) for n in range(10, 5000)})
    kept = with_news(full, NOW)
    assert len(kept.gpus) == 4096
    assert "GPU-1" in kept.gpus


@each(
    ("content", "words"),
    [
        (b"", "not a baseline"),
        (b"[]", "not a baseline"),
        (b'{"schema": "gpucheck.baseline/2"}', "not a baseline"),
        (b'{"schema": "gpucheck.baseline/1", "gpus": {"a": {"model": 3}}}', "not a baseline"),
        (b"\xff\xfe", "not a baseline"),
        (b"[" * 100_000, "not a baseline"),
        (b" " * (4 * 1024 * 1024 + 1), "larger than 4 MiB"),
    ],
)
def test_what_is_no_baseline_is_said_in_one_sentence(
    tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / "baseline.json"
    file.write_bytes(content)
    with pytest.raises(RateBaselineError, match=words):
        load(file)


def test_nonsense_inside_is_not_believed(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(
        '{"schema": "gpucheck.baseline/1",'
        ' "gpus": {"a": {"model": "m", "rates": {"x": -1, "y": 0, "good": 2}}},'
        ' "groups": {"a,b": {"size": 1, "busbw": 0}}}'
    )
    read = load(file)
    assert read.gpus["a"].rates == {"good": 2}
    assert read.groups == {}


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(RateBaselineError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RateBaselineError, match="cannot be written"):
        save(tmp_path / "file" / "baseline.json", NOW)


def test_a_pipe_in_its_place_blocks_nobody(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    os.mkfifo(file)
    with pytest.raises(RateBaselineError, match="not a regular file"):
        load(file)


def test_a_failed_write_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "baseline.json"
    save(file, NOW)

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RateBaselineError, match="No space left on device"):
        save(file, Baseline())
    assert load(file) == NOW
    assert list(tmp_path.iterdir()) == [file]


def test_where_it_is() -> None:
    assert default_path({"XDG_STATE_HOME": "/state", "HOME": "/root"}) == Path(
        "/state/gpucheck/baseline.json"
    )
    home = Path("/home/ann/.local/state/gpucheck/baseline.json")
    assert default_path({"HOME": "/home/ann"}) == home
    assert default_path({"XDG_STATE_HOME": "relative", "HOME": "/home/ann"}) == home
    with pytest.raises(RateBaselineError, match="XDG_STATE_HOME"):
        default_path({})


@pytest.mark.exhaustive
@settings(max_examples=40)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_baseline_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.mktemp("any") / "baseline.json"
    file.write_bytes(content)
    with pytest.raises(RateBaselineError):
        load(file)
