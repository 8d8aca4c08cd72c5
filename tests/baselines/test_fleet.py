"""Which hosts differ from their like."""

from pathlib import Path

from each import each
from test_machines import reported

from gpucheck.baselines.store import State
from gpucheck.baselines.words import differences, too_few
from gpucheck.baselines.words import fleet as fleet_words
from gpucheck.facts.driver import Nvml
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.torch import Distribution, Packages, TorchBuild

MACHINE = "selftest-passes"


def _host(name: str, snapshot: Snapshot) -> State:
    return State(
        file=Path(f"{name}.json"), host=name, note="", verdict="healthy", root_causes=(),
        snapshot=snapshot,
    )  # fmt: skip


def _with_driver(release: str | None) -> Snapshot:
    snapshot = reported(MACHINE).snapshot
    nvml = snapshot.get(Nvml)
    fields = {name: getattr(nvml, name) for name in nvml.__struct_fields__}
    return snapshot.with_section(Nvml(**{**fields, "driver_release": release}))


def _fleet(*releases: str | None) -> list[State]:
    return [_host(f"n{at}", _with_driver(release)) for at, release in enumerate(releases)]


def test_the_one_with_another_driver_is_named() -> None:
    (found,) = differences(_fleet("580.65.06", "580.65.06", "570.86.15", "580.65.06"))
    assert (found.fact, found.usual) == ("nvml.driver_release", "580.65.06")
    assert (found.alike, found.of) == (3, 4)
    assert found.hosts == {"n2": "570.86.15"}


@each(
    "releases",
    [
        ("580.65.06",) * 3,
        ("580.65.06", "570.86.15"),  # who is right?
        ("580.65.06", "580.65.06", "570.86.15", "570.86.15"),
        ("580.65.06", "580.65.06", "580.65.06", None),  # unknown is no difference
    ],
)
def test_where_nothing_is_usual_or_known_nobody_differs(releases: tuple[str | None, ...]) -> None:
    assert differences(_fleet(*releases)) == []


def test_a_package_that_is_missing_is_a_difference_only_where_packages_are_known() -> None:
    def host(name: str, *versions: str) -> State:
        found = [Distribution(project="torchvision", version=version) for version in versions]
        return _host(name, _with_driver("580.65.06").with_section(Packages(distributions=found)))

    nobody_knows = _host("n3", _with_driver("580.65.06").with_section(Packages()))
    fleet = [
        host("n0", "0.24.0"),
        host("n1", "0.24.0"),
        host("n2"),
        nobody_knows,
        host("n4", "0.24.0"),
    ]
    found = {difference.fact: difference.hosts for difference in differences(fleet)}
    assert found["packages.distributions.torchvision.version"] == {"n2": None}


def test_hosts_of_other_gpus_are_not_compared() -> None:
    other = _host("b200", reported("cvd-empty").snapshot)
    assert too_few([*_fleet("1", "1", "1"), other]) == ["b200"]
    assert differences([*_fleet("1", "1", "1"), other]) == []


def test_names_in_the_files_of_a_fleet_are_shown_without_control_characters() -> None:
    def host(name: str, version: str) -> State:
        found = [Distribution(project="a\033[31m\nb", version=version)]
        return _host(name, _with_driver("580.65.06").with_section(Packages(distributions=found)))

    hosts = [host("n0", "1"), host("n1", "1"), host("n2", "2\033]0;x\007")]
    text = fleet_words(differences(hosts), 3, [], ["\033[2J"], color=False, width=80)
    assert "n2" in text
    assert text.replace("\n", "").isprintable()


def test_a_key_that_ends_like_a_size_may_hold_a_text() -> None:
    def host(name: str, version: str) -> State:
        torch = TorchBuild(installed=True, version="2.9.1", pins={"foo_bytes": version})
        return _host(name, reported(MACHINE).snapshot.with_section(torch))

    found = differences([host("a", "1.0"), host("b", "1.0"), host("c", "2.0")])
    assert {difference.fact: difference.hosts for difference in found} == {
        "torch.pins.foo_bytes": {"c": "2.0"}
    }
