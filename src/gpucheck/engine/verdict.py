"""The decisive questions: while one of them is open, nothing may be called healthy."""

from collections.abc import Callable

import msgspec

from gpucheck.derived import DriverState, Gpus
from gpucheck.derived.torch_code import TorchCode
from gpucheck.engine.ask import supply
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.base import NOT_RECORDED
from gpucheck.facts.libraries import Loading
from gpucheck.facts.request import Request
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.torch import TorchBuild
from gpucheck.language import say
from gpucheck.tables import Tables

_Question = tuple[str, Callable[[Snapshot, Tables], object]]
"""A question, and what raises UnknownFactError as long as it is open."""


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A decisive question that nobody could answer, the fact it lacks and why."""

    question: str
    fact: str
    reason: str


def open_questions(snapshot: Snapshot, tables: Tables) -> tuple[OpenQuestion, ...]:
    """Return the decisive questions of a live machine that are open (architecture 1.2).

    A self-test that has passed on every GPU answers all of them.
    """
    tests = snapshot.get(SelfTests)
    if any(tests.passed_on_every_gpu(result.name) for _path, result in tests.of()):
        return ()
    return _open(
        (
            *_about_gpus(),
            (say("Which PyTorch build does the target interpreter have?"), _which_build),
            (say("Does the PyTorch build run on every visible GPU?"), _build_runs),
            (say("Are the libraries that PyTorch loads compatible?"), _libraries_followed),
        ),
        snapshot,
        tables,
    )


def questions_about_gpus(snapshot: Snapshot, tables: Tables) -> tuple[OpenQuestion, ...]:
    """Return the decisive questions that are open whatever is to run on the GPUs."""
    return _open(_about_gpus(), snapshot, tables)


def _about_gpus() -> tuple[_Question, ...]:
    return (
        (say("Is there an NVIDIA GPU?"), _gpu_present),
        (say("Does a working driver serve the GPU?"), _driver_serves),
    )


def _open(
    asked: tuple[_Question, ...], snapshot: Snapshot, tables: Tables
) -> tuple[OpenQuestion, ...]:
    found = []
    for question, ask in asked:
        try:
            ask(snapshot, tables)
        except UnknownFactError as unknown:
            reason = (
                unknown.reason or snapshot.problem(unknown.fact) or say("no information was given")
            )
            found.append(OpenQuestion(question=question, fact=unknown.fact, reason=reason))
    return tuple(found)


def untested(snapshot: Snapshot) -> tuple[OpenQuestion, ...]:
    """Return the one question of a run of self-tests alone, open while none has passed."""
    tests = snapshot.get(SelfTests)
    results = [result for _path, result in tests.of()]
    beyond_import = [result for result in results if result.name != "import-torch"]
    if any(result.status == "passed" for result in beyond_import or results):
        return ()
    reasons = [result.detail for result in results if result.detail]
    reason = tests.problem("results") or (reasons[0] if reasons else say("none was run"))
    return (
        OpenQuestion(
            question=say("Do the self-tests pass?"), fact="selftests.results", reason=reason
        ),
    )


def _gpu_present(snapshot: Snapshot, tables: Tables) -> bool:
    """Whether there is a GPU. With ``--gpus 0`` the question is not open."""
    if snapshot.get(Request).gpus == 0:
        return False
    gpus: Gpus = supply(Gpus, snapshot, tables)
    return gpus.present()


def _driver_serves(snapshot: Snapshot, tables: Tables) -> bool:
    if not _gpu_present(snapshot, tables):
        return False
    driver: DriverState = supply(DriverState, snapshot, tables)
    return driver.serves()


def _which_build(snapshot: Snapshot, _tables: Tables) -> str:
    """Return the kind of build; "" if there is no torch, which is an answer as well."""
    torch = snapshot.get(TorchBuild)
    if not known(torch.installed, "torch.installed"):
        return ""
    return known(torch.built_for, "torch.built_for")


def _build_runs(snapshot: Snapshot, tables: Tables) -> bool:
    """Whether the build runs. A driver that serves no GPU leaves this open: nothing is healthy."""
    if not _gpu_present(snapshot, tables) or _which_build(snapshot, tables) != "cuda":
        return False
    if not _driver_serves(snapshot, tables):
        raise UnknownFactError("cuda_driver.init_code", say("the driver serves no GPU"))
    code: TorchCode = supply(TorchCode, snapshot, tables)
    unknown = code.unknown_gpu(code.on_gpus())
    if unknown is not None:
        raise unknown
    return True


def _libraries_followed(snapshot: Snapshot, tables: Tables) -> bool:
    """Whether it was followed what a CUDA build loads, which decides whether it can be imported.

    Where nobody asked the machine, as in a recording without those files, it is no open question.
    """
    if _which_build(snapshot, tables) != "cuda":
        return False
    loading = snapshot.get(Loading)
    problem = loading.problem("libraries")
    if loading.libraries is None and problem and not problem.endswith(NOT_RECORDED):
        raise UnknownFactError("loading.libraries")
    return True
