"""What may be asked of the self-tests alone."""

from typing import TYPE_CHECKING, Annotated

import msgspec

from gpucheck.doctor.selftests import devices, test_names
from gpucheck.interface.request import Level, Option
from gpucheck.language import say

if TYPE_CHECKING:  # imported late: --help does not need it
    from gpucheck.selftests.plan import Wish


class SelftestRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which self-tests are to run, where, and how thoroughly; names are separated by commas."""

    tests: Annotated[
        str | None, Option(say("Only these, separated by commas: see gpucheck list."), "NAMES")
    ] = None
    level: Level = "quick"
    devices: Annotated[
        str | None,
        Option(
            say(
                "cpu, or GPUs such as cuda:0,cuda:2; by default every GPU, or the CPU if there is "
                "none."
            ),
            "DEVICES",
            flag="--device",
        ),
    ] = None
    ranks: (
        Annotated[
            int,
            msgspec.Meta(ge=1, le=64),
            Option(
                say(
                    "On the CPU, the number of processes of the tests that run in several; on GPUs "
                    "there is one process for each GPU."
                ),
                "N",
            ),
        ]
        | None
    ) = None
    seed: Annotated[
        int,
        msgspec.Meta(ge=0, le=2**63 - 1),
        Option(say("The seed of all random numbers."), "N"),
    ] = 0
    timeout: float = 300.0

    def wish(self) -> "Wish":
        """Return it as the self-tests take it.

        Raises:
            UsageError: a test or a device has another name.
        """
        from gpucheck.selftests.plan import Wish  # noqa: PLC0415

        return Wish(
            tests=test_names(self.tests),
            level=self.level,
            devices=devices(self.devices),
            ranks=self.ranks,
            seed=self.seed,
            timeout=self.timeout,
        )
