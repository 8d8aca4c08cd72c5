"""Every reader over samples, inputs that failed once, and altered samples: it reads or refuses.

``tools/fuzz.py`` does the same for hours, guided by what an input reaches.
"""

import random
import sys
import time
from pathlib import Path

import pytest
from fuzz_all import FAILURES, all_targets, kept
from fuzz_mutation import mutate
from fuzz_target import LARGEST, MEMORY, Target, TooMuchError, feed

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(sys.platform == "win32", reason="memory is measured as on Unix"),
]
SECONDS, FEWEST, MOST = 1.5, 30, 10_000
"""Processor time for the altered inputs of a target, and how many there are at least and at most.

They are the same ones every time, and show what a change of a reader breaks in most inputs. Of 16
readers that took more than 10,000, none reached a line of gpucheck for the first time after 8,497.
``tools/fuzz.py`` looks for rare ones, for hours.
"""
EACH = pytest.mark.parametrize("name", sorted(all_targets()))
FAILED = [(name, file.name) for name in sorted(all_targets()) for file in kept(name)]


@EACH
def test_samples(name: str) -> None:
    target = all_targets()[name]
    seeds = target.seeds()
    assert seeds
    for data in seeds:
        assert len(data) <= LARGEST
        feed(target, data)


@pytest.mark.parametrize(("name", "file"), FAILED)
def test_what_failed_once(name: str, file: str) -> None:
    feed(all_targets()[name], (FAILURES / name / file).read_bytes())


def test_every_folder_of_failures_is_that_of_a_target() -> None:
    assert {folder.name for folder in FAILURES.iterdir()} <= set(all_targets())


@EACH
def test_altered_samples(name: str, tmp_path: Path) -> None:
    target = all_targets()[name]
    chance = random.Random(name)  # noqa: S311  # the same inputs every time
    seeds = target.seeds()
    begun = time.process_time()
    for fed in range(MOST):
        if fed >= FEWEST and time.process_time() - begun > SECONDS:
            return
        data = mutate(chance.choice(seeds), target.form, chance, seeds, target.words)
        try:
            feed(target, data)
        except Exception as error:  # noqa: BLE001  # whatever it is
            (tmp_path / "input").write_bytes(data)
            pytest.fail(f"{name}: {error!r}: keep {tmp_path / 'input'} in {FAILURES / name}")


def test_a_reader_that_takes_too_much_time_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz_target.CPU_SECONDS", 0.05)

    def spin(_data: bytes) -> None:
        sum(range(10_000_000))

    with pytest.raises(TooMuchError, match="s for 3 bytes"):
        feed(Target("x", spin, list, "bytes"), b"abc")


def test_a_reader_that_takes_too_much_memory_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter((1 << 20, MEMORY + (2 << 20)))  # that of this process may be high already
    monkeypatch.setattr("fuzz_target._peak", lambda: next(peaks))
    with pytest.raises(TooMuchError, match="257 MiB for 3 bytes"):
        feed(Target("x", lambda _data: None, list, "bytes"), b"abc")
