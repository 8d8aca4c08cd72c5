"""A fault under one function of a real torch turns its tests red, with the right finding.

Launcher, zygote, workers, the code that judges and the rules are the shipped ones; only what torch
does is replaced, by a sitecustomize. The tests that share the operator are named in the case, and
in docs/selftests/reference.md.
"""

import importlib.util
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest
from fake_patient import Patient
from rules_support import TABLES, snapshot

from gpucheck.engine import diagnose
from gpucheck.facts.claims import Severity
from gpucheck.facts.selftests import SelfTests
from gpucheck.machine import LiveHost
from gpucheck.selftests.launcher import Launcher
from gpucheck.selftests.plan import Wish, headers

pytestmark = pytest.mark.process

NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here")
ALL = ("device-placement", "cublas-matmul", "cudnn-convolution", "all-reduce")
DEADLINES = {
    "a product that hangs": ("cublas-matmul", 2.0),
    "a rank that hangs": ("all-reduce", 9.0),
}
"""Seconds for the test that hangs; all others keep theirs."""
SHARED = {"a flipped bit of a convolution": ("training-step",)}
"""Tests beyond these that use the same operator."""

SITE = """
import sys
from importlib.machinery import PathFinder

def put_fault(torch):
    def is_under_test(tensor):
        return tensor.dtype == torch.float32 and tensor.numel() >= 64
    def flip(tensor, bit):
        copy = tensor.detach().clone()
        copy.view(-1).view(torch.int32)[5] ^= 1 << bit
        return tensor + (copy - tensor).detach() if tensor.requires_grad else copy
    functional, distributed = torch.nn.functional, torch.distributed
{fault}

class Finder:
    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            put_fault(module)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""
MATMUL = """
right = torch.mm
def mm(left, other, **more):
    return {what} if is_under_test(left) and not more else right(left, other, **more)
torch.mm = mm
"""
CONVOLUTION = """
right = functional.conv2d
def conv2d(data, *more, **named):
    result = right(data, *more, **named)
    return flip(result, 22) if is_under_test(data) else result
functional.conv2d = conv2d
"""
SIGMOID = """
right = torch.sigmoid
def sigmoid(data, *more, **named):
    import os, signal
    os.kill(os.getpid(), signal.SIGSEGV)
torch.sigmoid = sigmoid
"""
REDUCTION = """
right = distributed.all_reduce
def all_reduce(tensor, *more, **named):
    if distributed.get_rank() == 1 and tensor.numel() == 1000:
        import os, time
        {what}
    return right(tensor, *more, **named)
distributed.all_reduce = all_reduce
"""
FLIPPED = "tensor.view(torch.int32)[5] ^= 1 << 20"
CASES = {
    "a flipped bit of a product": (
        MATMUL.format(what="flip(right(left, other), 0)"),
        {("cublas-matmul", "wrong-result")},
    ),
    "fp32 that is computed in bf16": (
        MATMUL.format(what="right(left.bfloat16(), other.bfloat16()).float()"),
        {("cublas-matmul", "wrong-result")},
    ),
    "a product that hangs": (
        MATMUL.format(what="__import__('time').sleep(1000)"),
        {("cublas-matmul", "selftest-failed")},
    ),
    "a flipped bit of a convolution": (
        CONVOLUTION,
        {("cudnn-convolution", "wrong-result"), ("training-step", "wrong-result")},
    ),
    "an activation that crashes": (SIGMOID, {("cudnn-convolution", "selftest-failed")}),
    "a contribution with a flipped bit": (
        REDUCTION.format(what=FLIPPED),
        {("all-reduce", "wrong-result")},
    ),
    "a rank that hangs": (
        REDUCTION.format(what="time.sleep(1000)"),
        {("all-reduce", "rank-hangs")},
    ),
    "a rank that crashes": (
        REDUCTION.format(what="os.kill(os.getpid(), 11)"),
        {("all-reduce", "rank-crashed")},
    ),
}


def red(found: SelfTests) -> set[tuple[str, str]]:
    """Return each test that an error rests on, with the finding; no other test may be red."""
    found_by = set()
    for finding in diagnose(snapshot(found), TABLES).standing:
        if finding.severity is not Severity.ERROR:
            continue
        for evidence in finding.evidence:
            if evidence.fact.startswith("selftests.results."):
                found_by.add(
                    ((found.results or [])[int(evidence.fact.split(".")[2])].name, finding.slug)
                )
    assert {name for name, _slug in found_by} == {result.name for _path, result in found.wrong()}
    return found_by


@NEEDS_TORCH
@pytest.mark.parametrize("case", CASES)
def test_a_fault_under_torch_turns_its_tests_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    fault, expected = CASES[case]
    text = SITE.format(fault=textwrap.indent(fault, "    "))
    (tmp_path / "sitecustomize.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("gpucheck.selftests.job_runner._PEER_SECONDS", 0.5)
    tests = dict(headers())
    if case in DEADLINES:
        name, seconds = DEADLINES[case]
        tests[name] = msgspec.structs.replace(tests[name], seconds={"quick": seconds})
    names = ALL + SHARED.get(case, ())
    wish = Wish(tests=names, devices=("cpu",), ranks=2)
    found = Launcher(LiveHost().supervise, sys.executable, wish, tests).run()
    assert red(found) == expected, found.wrong()
    assert {result.name for _path, result in found.of()} >= set(names)


def test_cudnn_that_is_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no cuDNN on a CPU: torch and its GPU are stand-ins, what judges is shipped."""
    body = """
from gpucheck_worker.convolution import prove_cudnn
bench.torch.version.hip = None
bench.torch.backends.cudnn.is_available = lambda: True
bench.torch.backends.cudnn.enabled = False
prove_cudnn(bench)
"""
    patient = Patient(tmp_path, monkeypatch, gpus=1, cuda="13.0", tests={"cudnn-convolution": body})
    assert red(patient.examine()) == {("cudnn-convolution", "cudnn-runtime-failure")}
