"""What the flight recorder of PyTorch kept: which ranks had begun the last collective, who not."""

from collections.abc import Mapping, Sequence

from gpucheck.cluster.diagnose.process_state import spans_of
from gpucheck.cluster.model import RankResult, StepResult
from gpucheck.language import say


def in_groups(history: Sequence[StepResult]) -> list[str]:
    """Return in sentences what was recorded in the first step in which ranks ran out of time."""
    for done in history:
        if said := _of_group(done.results):
            return said
    return []


def _of_group(results: Mapping[int, RankResult]) -> list[str]:
    known = {rank: one.flight for rank, one in sorted(results.items()) if one.flight is not None}
    latest = max((one.begun for one in known.values()), default=0)
    if not latest:
        return []
    begun = [rank for rank, one in known.items() if one.begun == latest]
    behind = [rank for rank, one in known.items() if one.begun < latest]
    operation = known[begun[0]].operation
    said: list[str] = [
        say(
            "Ranks that had begun collective {number} ({operation}) according to PyTorch's flight "
            "recorder: {count} ({ranks})",
            number=latest, operation=operation, count=len(begun), ranks=spans_of(begun),
        )
    ]  # fmt: skip
    if behind:
        said.append(
            say(
                "Ranks that had not begun it according to their recorder: {count} ({ranks})",
                count=len(behind), ranks=spans_of(behind),
            )
        )  # fmt: skip
    return said
