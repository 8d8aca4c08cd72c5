"""One cause as a sentence for people, and how certain it is."""

from collections.abc import Collection, Iterable

from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Phase
from gpucheck.findings.form import GroupFailure
from gpucheck.preflight.diagnose import direct_evidence, ways
from gpucheck.preflight.diagnose.causes import Cause
from gpucheck.preflight.diagnose.evidence import Evidence, Trial
from gpucheck.preflight.diagnose.naming import words_of

_CONNECT = direct_evidence.PHASES.index("connect")
_PAIR = 2
HOW: dict[GroupFailure, str] = {
    "wrong": "got wrong sums",
    "store": "did not meet at the store",
    "connect": "never connected",
    "error": "failed",
    "hang": "entered an all-reduce and never left it",
}


def form_of(trial: Trial) -> GroupFailure:
    """Return how a group fails."""
    known = list(trial.results.values())
    failed = [one for one in known if direct_evidence.went_wrong(one)]
    if any(one.kind == "wrong-value" for one in failed):
        return "wrong"
    furthest = max((direct_evidence.PHASES.index(one.phase) for one in known), default=0)
    if any(one.kind == "store-unreachable" for one in failed) or furthest < _CONNECT:
        return "store"
    if furthest == _CONNECT:
        return "connect"
    errors = (one for one in failed if one.status != "timed-out" and one.kind != "peer-lost")
    return "error" if any(errors) else "hang"


def phase_of(trial: Trial) -> Phase | None:
    """Return the phase that the first rank to go wrong was in."""
    failed = [one for one in trial.results.values() if direct_evidence.went_wrong(one)]
    first = min(failed, key=lambda one: (one.order, one.rank), default=None)
    return first.phase if first is not None else None


class Sentence:
    """The sentence about a cause.

    Attributes:
        is_link: it is about the two ends of a link.
        is_nobody: nobody is blamed: only all together fail.
    """

    def __init__(self, evidence: Evidence, cause: Cause, form: GroupFailure) -> None:
        self._evidence = evidence
        self._cause = cause
        self._how = HOW[form]
        self._way = ways.in_words(evidence.first(cause.group)) if form == "store" else ""
        if self._way:
            self._how = f"{HOW[form]} ({self._way})"
        is_whole = len(evidence.nodes_of_job) == 1 and len(cause.group) > _PAIR
        self.is_nobody = cause.sort == "scale" or (cause.sort == "inside" and is_whole)
        of_two = cause.sort == "either" and len(cause.units) == _PAIR
        of_two |= cause.sort == "inside" and len(cause.ranks) == len(cause.group) == _PAIR
        self.is_link = cause.sort in ("link", "node-link") or of_two

    def confidence(self) -> Confidence:
        """Return how certain it is: less where chance, or too many bad units, may be behind it."""
        sort, evidence = self._cause.sort, self._evidence
        if sort == "either" or self._is_flaky() or self._are_many():
            return Confidence.POSSIBLE
        if sort in ("link", "node-link"):
            again = evidence.fails(self._cause.group) > 1
            return Confidence.CERTAIN if again else Confidence.LIKELY
        if sort == "inside":
            again = evidence.fails_within[self._cause.units[0]] > 1
            is_told = not self.is_link and len(evidence.nodes_of_job) > 1  # by the other nodes
            return Confidence.LIKELY if again and is_told else Confidence.POSSIBLE
        return Confidence.LIKELY if sort == "port" else Confidence.CERTAIN

    def words(self) -> str:
        """Return the sentence, with everything that makes it less certain."""
        words = self._sentence()
        if self._is_flaky():
            words += "; but it passed at least once when that was repeated"
        named = direct_evidence.agreed_on(self._evidence.first(self._cause.group).results.values())
        if self.is_link and named is not None:
            words += f"; what rank {named} sent is what was wrong on both sides"
        if self._cause.sort in ("rank", "node") and self._are_many():
            words += "; this is unsure, since more than a quarter of them fail"
        return words

    def _sentence(self) -> str:
        cause, how = self._cause, self._how
        good = f"{len(cause.partners)} partners that pass with others"
        if cause.sort == "rank":
            return f"{how}, with each of {good} (ranks {words_of(cause.partners)})"
        if cause.sort == "port":
            return (
                f"{how}, with each of {good} on other hosts (ranks {words_of(cause.partners)}); it "
                "works with its neighbours: what it uses to leave its host is broken"
            )
        if cause.sort == "node":
            hosts = words_of(self._hosts(cause.partners))
            return (
                f"its ranks {how}, with each of {good} (hosts {hosts}), and work among themselves"
            )
        if cause.sort in ("link", "node-link"):
            return self._of_link()
        if cause.sort == "inside":
            return self._of_inside()
        if cause.sort == "scale":
            return self._of_scale()
        return self._of_either()

    def _of_link(self) -> str:
        times = _often(self._evidence.fails(self._cause.group))
        if self._way:
            return f"{self._way}: {times}, while each end passes with others"
        ends = "the two" if self._cause.sort == "link" else "the ranks of the two hosts"
        return f"{ends} {self._how} with each other ({times}), and each passes with others"

    def _of_inside(self) -> str:
        cause = self._cause
        if self.is_link:
            return f"together they {self._how}: one of the two, or the link between them, is broken"
        if cause.partners:
            good = words_of(cause.partners)
            return f"with rank {good}, which passes with others, it {self._how}: it, or the link"
        if len(cause.group) == _PAIR:
            return (
                f"no pair of the ranks {words_of(cause.ranks)} passes: they {self._how}; one of "
                "them, or what they share, is broken"
            )
        return (
            f"its ranks {self._how} from {len(cause.group)} ranks on, while "
            "every pair of them that was tried passes: not one GPU, but what they share"
        )

    def _of_scale(self) -> str:
        nodes = {self._evidence.node_of[rank] for rank in self._cause.group}
        return (
            f"from {len(self._cause.group)} ranks on {len(nodes)} hosts on, the ranks {self._how}, "
            "while every pair of hosts that was tried passes: a link between nodes, or scale"
        )

    def _of_either(self) -> str:
        cause = self._cause
        hosts = words_of(self._hosts(cause.units))
        if cause.partners:
            good = words_of(self._hosts(cause.partners))
            return f"with {good}, which pass with others, its ranks {self._how}: it, or the link"
        if len(cause.units) == _PAIR:
            return f"together they {self._how}: {hosts.replace(', ', ' or ')}, or the link between"
        return (
            f"no pair of {hosts} that was tried passes: they {self._how}; more than a quarter of "
            "the nodes are bad, or what they share is, so that nobody can be named"
        )

    def _hosts(self, nodes: Iterable[int]) -> list[str]:
        host_of = self._evidence.host_of
        return [host_of.get(node) or f"node {node}" for node in nodes]

    def _is_flaky(self) -> bool:
        ranks = set(self._cause.ranks)
        return any(
            not ranks.isdisjoint(trial.ranks) and len(trial.ranks) <= len(self._cause.group)
            for trial in self._evidence.transients
        )

    def _are_many(self) -> bool:
        """Whether more than a quarter of the ranks of the node, or of the nodes, are bad."""
        evidence, node = self._evidence, self._evidence.node_of[self._cause.ranks[0]]
        if self._cause.sort not in ("rank", "node", "inside"):
            return False
        neighbours = evidence.nodes_of_job.get(node, [])
        if self._cause.sort == "rank" and len(neighbours) > 1:
            bad = [rank for rank in neighbours if rank not in evidence.ranks.proven]
            return len([rank for rank in bad if rank not in evidence.direct]) > _quarter(neighbours)
        return evidence.bad_node_count > _quarter(evidence.nodes_of_job)


def _quarter(units: Collection[int]) -> int:
    return max(1, len(units) // 4)


def _often(times: int) -> str:
    return {1: "once", 2: "twice"}.get(times, f"{times} times")
