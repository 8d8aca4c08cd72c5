"""Results of self-tests, for tests of rules and reports."""

from typing import Any

from gpucheck.facts.selftests import SelfTest, SelfTests

NOT_RUN = SelfTests(problems={"*": "there is no device of an NVIDIA driver"})


def result(name: str, status: str = "passed", kind: str = "", **more: Any) -> SelfTest:  # noqa: ANN401
    """Return a result on cuda:0."""
    more = {"device": "cuda:0", **more}
    return SelfTest(
        name=name,
        status=status,  # type: ignore[arg-type]  # one of the contract's
        kind=kind,
        sources={"*": f"the self-test {name} on {more['device']}"},
        **more,
    )


def failed(name: str, kind: str, detail: str = "it went wrong", **more: Any) -> SelfTest:  # noqa: ANN401
    """Return a result that failed on cuda:0."""
    return result(name, "failed", kind, detail=detail, **more)


def ran(*results: SelfTest, devices: tuple[str, ...] = ("cuda:0",)) -> SelfTests:
    """Return the section of a run on these devices."""
    return SelfTests(
        level="quick",
        devices=list(devices),
        results=list(results),
        import_seconds=2.0,
        seconds=5.0,
        sources={"*": "self-tests in /home/alice/venv/bin/python"},
    )
