"""One of NCCL's transports (NVLink SHARP, cuMem, shared memory, a protocol) fails here.

NCCL chooses among several ways to move data. If a driver, the limits of a container or the fabric
breaks one of them, the job runs as soon as this one is turned off.

Symptoms: "transport/nvls.cc ... NCCL WARN Cuda failure", "Failed to bind NVLink SHARP (NVLS)
Multicast memory", cuMem calls that fail, or a job that runs only with NCCL_NVLS_ENABLE=0,
NCCL_CUMEM_ENABLE=0, NCCL_SHM_DISABLE=1 or NCCL_PROTO=Simple.

Peer-to-peer has its own page: nccl-p2p-broken. A full /dev/shm is reported as shm-too-small, a
Fabric Manager that is not running as fabric-manager-down.

When it is reported: a collective of the self-tests fails, passes with one of these variables, and
fails again without it (only "likely" if no time was left for the last run).

``gpucheck preflight`` reports the same for the smallest group of ranks that fails, and names the
host.

Fix: set the one variable that helps until you have updated the driver, the Fabric Manager (same
release as the driver) and NCCL.
"""

from gpucheck.derived.selftest_results import NcclControl, settings
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Hit, InPreflight, Judgement, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays, run_tests
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("a transport of NCCL fails on this machine"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=(
        "fabric-manager-down",
        "shm-too-small",
        "gpu-fallen-off-bus",
        "gpu-hardware-fault",
    ),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix=say(
            "Update the driver, on NVSwitch machines the Fabric Manager to the same release, and "
            "torch with its NCCL."
        ),
        of_links=("error",),
        passes_without=(
            "NCCL_NVLS_ENABLE",
            "NCCL_CUMEM_ENABLE",
            "NCCL_SHM_DISABLE",
            "NCCL_PROTO",
            "gloo",
        ),
    ),
)

_TRANSPORTS = {
    "NCCL_SHM_DISABLE": say("shared memory"),
    "NCCL_NVLS_ENABLE": "NVLink SHARP (NVLS)",
    "NCCL_CUMEM_ENABLE": say("memory mapped by cuMem"),
}


@RULE.check
def check(tests: SelfTests, says: SelfTestSays, nccl: NcclControl) -> Judgement | None:
    """Look for a collective that passes without one of NCCL's transports."""
    if tests.results is None:
        return None
    for control in nccl.passed_without():
        name = next((name for name in _TRANSPORTS if name in control.variables), None)
        if name is None:
            continue
        variables = settings(control.variables)
        again = run_tests(control.result.name)
        return Hit(
            headline=say(
                "NCCL's transport over {transport} fails here: the self-test {test} passes only "
                "with {variables}: {detail}",
                transport=_TRANSPORTS[name],
                test=control.result.name,
                variables=variables,
                detail=control.result.detail,
            ),
            evidence=(f"{control.path}.detail", f"{control.path}.data.control"),
            fixes=(
                Fix(
                    text=say("Do without this transport for now."),
                    commands=(f"export {variables}",),
                    verify=f"{variables} {again}",
                ),
                Fix(
                    text=say(
                        "To repair it, update the driver, on NVSwitch machines the Fabric Manager "
                        "to the same release, and torch with its NCCL; then try without the "
                        "variable."
                    ),
                    verify=again,
                ),
            ),
            confidence=Confidence.CERTAIN if control.again else Confidence.LIKELY,
        )
    return says.fine("all-reduce")
