"""Which build is recommended, and what is said if none fits."""

import itertools
import re
from pathlib import Path

import pytest
from each import each
from msgspec.structs import replace
from rules_support import TABLES

from gpucheck.advice.build_limits import MachineLimits, fits_driver, fits_gpus
from gpucheck.advice.offers import Offer
from gpucheck.advice.reasons import Reasons
from gpucheck.advice.recommender import Card, Recommendation, Recommender, Situation, SpecifierError
from gpucheck.advice.situations import GpuNameError, NamedFor, cards_named
from gpucheck.tables import Tables, tables_dir
from gpucheck.tables.compilers import Runs
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.torch import TorchBuilds, TorchReleases
from gpucheck.tables.versions import admitted, numbers

RECOMMENDER = Recommender(TABLES)
GTX_1080 = Card("GTX 1080", "6.1")
H100 = Card("H100", "9.0")
V100 = Card("V100", "7.0")
RTX_5090 = Card("RTX 5090", "12.0")
PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


def recommend(*cards: Card, **known_facts: str | bool | tuple[Card, ...] | None) -> Recommendation:
    facts = {"platform": "linux_x86_64", "python": "3.12", **known_facts}
    return RECOMMENDER.recommend(Situation(cards=cards, **facts))  # type: ignore[arg-type]


def best(found: Recommendation) -> Offer:
    assert found.best is not None, found.reasons
    return found.best


def why_nothing(found: Recommendation) -> str:
    assert found.best is None
    assert found.reasons
    return "\n".join(found.reasons)


@each(
    ("cards", "given", "torch", "build"),
    [
        ((GTX_1080,), {"driver": "580.95.05"}, "2.14.1", "cu126"),
        ((GTX_1080,), {"driver": "580"}, "2.14.1", "cu126"),
        ((GTX_1080,), {"driver": "470.256.02"}, "2.7.1", "cu118"),
        ((H100,), {"driver": "535.288.01"}, "2.14.1", "cu126"),
        ((H100,), {"driver": "580.65.06"}, "2.15.0", "cu132"),
        ((H100,), {"driver": "580.65.06", "torch": "2.6"}, "2.6.0", "cu124"),
        ((H100,), {"driver": "580.65.06", "torch": "<2.9"}, "2.8.0", "cu128"),
        ((H100,), {"driver": "580.65.06", "torch": "==2.5.*"}, "2.5.1", "cu124"),
        ((H100, GTX_1080), {"driver": "580"}, "2.14.1", "cu126"),
        ((H100,), {"driver": "580", "python": "3.13t"}, "2.12.0", "cu130"),
        ((H100,), {"driver": "580", "glibc": "2.17"}, "2.6.0", "cu124"),
        ((RTX_5090,), {"driver": "576.57", "platform": "windows"}, "2.11.0", "cu128"),
        ((RTX_5090,), {"driver": "570.124.06"}, "2.11.0", "cu128"),
        ((RTX_5090,), {"driver": "570.124.06", "torch": ">=2.12"}, "2.13.0", "cu129"),
        ((), {}, "2.15.0", "cpu"),
        ((), {"python": "3.8", "platform": "windows"}, "2.4.1", "cpu"),
        ((), {"driver": "390.157"}, "2.15.0", "cpu"),
    ],
)
def test_best(cards: tuple[Card, ...], given: dict[str, str], torch: str, build: str) -> None:
    offer = best(recommend(*cards, **given))
    assert (offer.torch, offer.build) == (torch, build)


def test_the_reasons_name_gpu_driver_python_and_what_limits() -> None:
    text = "\n".join(recommend(GTX_1080, driver="470.256.02").reasons)
    assert "GTX 1080 (sm_61)" in text
    assert "Driver 470.256.02 runs builds for CUDA 11.8, which need 450.80.02" in text
    assert "Python 3.12" in text
    assert "needs a cu126 build of torch 2.14.1 or older" in text


def test_a_driver_update_is_named_with_the_release_it_takes() -> None:
    found = recommend(H100, driver="535.288.01")
    assert found.driver_update is not None
    assert (found.driver_update.torch, found.driver_needed) == ("2.15.0", "580.65.06")
    assert recommend(H100, driver="580.95.05").driver_update is None


def test_no_driver_update_is_named_that_would_drop_the_gpu() -> None:
    kepler = recommend(Card("K80", "3.7"), driver="470.256.02")
    assert best(kepler).build == "cu118"
    assert kepler.driver_update is None


def test_older_releases_that_fit_are_listed_newest_first() -> None:
    found = recommend(H100, driver="580.65.06")
    releases = [numbers(offer.torch) for offer in found.alternatives]
    assert releases == sorted(releases, reverse=True)
    assert releases[0][:2] == (2, 14)


def test_an_unconfirmed_list_of_code_is_said() -> None:
    found = recommend(GTX_1080, driver="580.88", platform="windows", torch="==2.14.*")
    assert "not fully confirmed" in " ".join(found.notes)
    assert "confirmed" not in " ".join(recommend(GTX_1080, driver="470.256.02").notes)


def test_a_driver_newer_than_the_tables_is_said() -> None:
    assert "newer than the tables" in " ".join(recommend(H100, driver="999.10").notes)


def test_the_python_that_has_a_wheel_is_named() -> None:
    text = why_nothing(recommend(GTX_1080, driver="580", python="3.15"))
    assert "GTX 1080 (sm_61) needs a cu126 build of torch 2.14.1 or older" in text
    assert "torch 2.14.1 has no wheel for Python 3.15. It would fit with Python 3.14" in text


def test_gpus_that_share_no_build_are_said_as_such() -> None:
    text = why_nothing(recommend(GTX_1080, RTX_5090, driver="580"))
    assert "code for all of GTX 1080 (sm_61) and RTX 5090 (sm_120)" in text
    assert "cu126" in text
    assert "cu128" in text


def test_a_driver_that_dropped_the_gpu_excludes_it_unless_it_was_seen_to_serve_it() -> None:
    dropped = recommend(GTX_1080, driver="590.48.01")
    assert "branch 580 is the last" in why_nothing(dropped)
    assert "torch 2.14.1 (cu126) would fit" in why_nothing(dropped)
    assert [offer.build for offer in dropped.would_fit] == ["cu126"]
    assert best(recommend(GTX_1080, driver="590.48.01", driver_serves=True)).build == "cu126"
    assert "branch 580 is the last" in why_nothing(recommend(GTX_1080, driver_cuda="13.1"))


def test_a_driver_older_than_the_gpu_excludes_it() -> None:
    assert "branch 570 is the first" in why_nothing(recommend(RTX_5090, driver="550.54.14"))
    assert "branch 570 is the first" in why_nothing(recommend(RTX_5090, driver_cuda="12.4"))


def test_a_driver_too_old_for_every_build_names_the_one_it_takes() -> None:
    text = why_nothing(recommend(H100, driver="390.157"))
    assert "Driver 390.157 does not support H100 (sm_90) yet" in text
    assert "torch 2.15.0 (cu132) would fit with driver 580.65.06 or newer" in text
    text = why_nothing(recommend(H100, driver="390.157", driver_serves=True))
    assert "driver 390.157 cannot run builds for CUDA 13.2. It would fit with driver 580" in text
    assert "torch 2.15.0 (cu132) does not fit, because driver 390.157" in text


def test_a_specifier_that_excludes_all_is_the_reason() -> None:
    text = why_nothing(recommend(RTX_5090, driver="580", torch="2.6"))
    assert "No build that matches --torch 2.6 has code for RTX 5090" in text
    assert "matches no release" in why_nothing(recommend(H100, driver="580", torch=">=3"))


def test_a_release_without_cuda_builds_for_the_platform_is_not_called_unknown() -> None:
    text = why_nothing(recommend(H100, driver="580", torch="2.3.1", platform="linux_aarch64"))
    assert "no CUDA build of torch 2.3.1 for Linux on aarch64" in text


def test_two_limits_that_exclude_together_are_both_named() -> None:
    text = why_nothing(recommend(H100, driver="390.157", python="3.8", torch=">=2.6"))
    assert "Driver 390.157" in text
    assert "would fit with driver 580.65.06 or newer and Python 3.11" in text


def test_an_old_glibc_is_a_reason() -> None:
    text = why_nothing(recommend(H100, driver="580", glibc="2.17", torch="2.9"))
    assert "glibc 2.17 of this system is older than 2.28" in text


def test_a_gpu_or_platform_without_builds_is_said() -> None:
    assert "Fermi" in why_nothing(recommend(Card("2.1", "2.1"), driver="390"))
    assert "do not know" in why_nothing(recommend(Card("99.9", "99.9"), driver="580"))
    assert "no CUDA build of PyTorch" in why_nothing(
        recommend(H100, driver="580", platform="linux_ppc64le")
    )
    assert "for Windows on Arm is known to have code for H100" in why_nothing(
        recommend(H100, driver="615", platform="windows_aarch64")
    )


@each("capability", ["9", "1.2.3", "nan", ""])
def test_a_gpu_whose_capability_is_none_goes_by_its_name(capability: str) -> None:
    assert str(Card("H100", capability)) == "H100"
    why_nothing(recommend(Card("H100", capability), driver="580"))


def test_what_is_neither_version_nor_specifier_is_refused() -> None:
    with pytest.raises(SpecifierError):
        recommend(H100, torch="newest please")
    for sign in ("<", "==1.*,<", "==", "~="):
        with pytest.raises(SpecifierError) as refused:
            recommend(H100, torch=sign + "9" * 5000)  # Python converts no such number
        assert len(str(refused.value)) < 200


@each(
    ("specifier", "expected"),
    [
        ("", {"2.5.0", "2.5.1", "2.6.0"}),
        ("2.5", {"2.5.0", "2.5.1"}),
        ("2.5.1", {"2.5.1"}),
        ("~=2.5.0", {"2.5.0", "2.5.1"}),
        (">=2.5.1,!=2.6.0", {"2.5.1"}),
    ],
)
def test_admitted(specifier: str, expected: set[str]) -> None:
    assert admitted(specifier, ["2.5.0", "2.5.1", "2.6.0"]) == (frozenset(expected), "")


def test_a_local_part_names_the_build() -> None:
    for asked in ("2.6.0+cu118", "==2.6.0+cu118"):
        assert best(recommend(H100, driver="580", torch=asked)).build == "cu118"
    assert "no build cu130 of torch 2.6.0" in why_nothing(
        recommend(H100, driver="580", torch="2.6.0+cu130")
    )


@each(
    ("card", "given", "torch", "build"),
    [
        (V100, {"driver": "440.118.02", "python": "3.8", "glibc": "2.27"}, "1.12.1", "cu102"),
        (V100, {"driver": "470.256.02", "python": "3.6", "glibc": "2.27"}, "1.10.2", "cu113"),
        (Card("RTX 2060", "7.5"),
         {"driver": "445.87", "python": "3.8", "platform": "windows"}, "1.10.2", "cu102"),
        (V100, {"driver": "580.95.05", "python": "3.10", "torch": "<1.13"}, "1.12.1", "cu113"),
    ],
)  # fmt: skip
def test_releases_before_1_13_are_offered(
    card: Card, given: dict[str, str], torch: str, build: str
) -> None:
    found = best(recommend(card, **given))
    assert (found.torch, found.build) == (torch, build)


def test_gpus_that_no_driver_serves_together_get_no_two_environments() -> None:
    card = Card("RTX 5060 Ti", "12.0")
    text = why_nothing(recommend(GTX_1080, card, driver="580.95.05"))
    assert "No driver serves all of these GPUs on Linux" in text
    assert "one environment for each" not in text
    k80, l4 = Card("K80", "3.7"), Card("L4", "8.9")
    text = why_nothing(recommend(k80, l4, driver="580.95.05", python="3.10"))
    assert "branch 470 is the last for K80 (sm_37), and branch 520 the first for L4" in text
    assert "Install a driver" not in text


def test_conda_forge_is_named_where_it_alone_has_code_for_all() -> None:
    found = recommend(
        GTX_1080, Card("RTX 5060 Ti", "12.0"), driver="581.57", driver_os="windows"
    )  # WSL 2: the driver of Windows has one kind of module
    assert "one environment for each" in why_nothing(found)
    assert found.elsewhere is not None
    assert found.elsewhere.build == "cuda129"


def test_a_release_older_than_the_tables_may_run_with_an_older_driver() -> None:
    found = recommend(GTX_1080, driver="384.183", python="3.6")
    assert found.unseen
    assert "The tables begin with torch 1.7.0" in why_nothing(found)
    for card, python, torch in (
        (GTX_1080, "3.10", ""),  # 1.7 has no wheel for it, and neither had older ones
        (Card("RTX 3060", "8.6"), "3.8", ""),  # nothing before 1.8 has its code
        (GTX_1080, "3.6", "1.7"),
    ):
        found = recommend(card, driver="384.183", python=python, torch=torch)
        assert "The tables begin with" not in why_nothing(found)


def test_a_release_without_a_build_for_the_platform_is_said() -> None:
    text = why_nothing(recommend(H100, driver="580", platform="linux_aarch64", torch="1.12"))
    assert "no CUDA build of torch 1.12.1 for Linux on aarch64" in text


def test_the_driver_that_is_named_is_the_smallest_step() -> None:
    found = recommend(V100, driver="440.118.02", python="3.8")
    assert found.driver_needed == "450.80.02"
    assert found.driver_update is not None
    assert (found.driver_update.torch, found.driver_update.build) == ("2.4.1", "cu118")


ORIN, THOR = Card("Jetson AGX Orin", "8.7"), Card("NVIDIA Thor", "11.0")


def test_a_jetson_is_left_to_its_jetpack() -> None:
    for driver in ("540", "540.9.9"):  # of JetPack 6, but of which one is not known
        text = why_nothing(recommend(ORIN, driver=driver, platform="linux_aarch64"))
        assert "Jetson" in text
        assert "from 7.2 on" in text
    offers = RECOMMENDER.offers("linux_aarch64")
    (then,) = Reasons(offers, Situation(platform="linux_aarch64", cards=(THOR,))).newer_jetpack()
    assert "from 7.0 on" in then


@each(
    ("card", "driver", "build", "cuda"),
    [
        (ORIN, "540.3.0", "cu122", "12.2"),  # JetPack 6.0
        (ORIN, "540.4.0", "cu126", "12.6"),
        (ORIN, "540.5.0", "cu126", "12.6"),
        (ORIN, "35.4.1", "cu114", "11.4"),  # up to JetPack 5 it is the release of Linux for Tegra
        (THOR, "580.00", "cu132", "13.0"),  # older than 580.65.06, which counts elsewhere
        (THOR, "580", "cu132", "13.0"),
    ],
)
def test_the_driver_of_a_board_is_that_of_its_jetpack(
    card: Card, driver: str, build: str, cuda: str
) -> None:
    python = {"cu122": "3.10", "cu126": "3.10", "cu114": "3.8"}.get(build, "3.12")
    answer = recommend(card, driver=driver, platform="linux_aarch64", python=python)
    assert answer.best is not None
    assert answer.best.build == build
    assert f"The driver (CUDA {cuda}) runs builds for" in " ".join(answer.reasons)
    assert answer.oldest_driver is None


def test_a_release_of_a_desktop_driver_is_still_compared() -> None:
    found = recommend(Card("RTX 4090", "8.9"), driver="580.00", python="3.12").best
    assert found is not None
    assert found.cuda == "12.6"


def test_a_build_that_is_not_announced_is_named_beside_the_best() -> None:
    answer = recommend(Card("B200", "10.0"), driver="575.57.08", python="3.12")
    assert answer.best is not None
    assert answer.best.torch == "2.11.0"
    assert "torch 2.13.0 (cu129) fits as well" in " ".join(answer.reasons)
    ada = recommend(Card("RTX 4090", "8.9"), driver="575.57.08", python="3.12")
    assert "without announcing" not in " ".join(ada.reasons)


@each(
    ("name", "capability"),
    [
        ("RTX 4090", "8.9"),
        ("NVIDIA GeForce RTX 4090", "8.9"),
        ("gtx 1080 ti", "6.1"),
        ("P100", "6.0"),
        ("H100", "9.0"),
        ("8.9", "8.9"),
        ("sm_120", "12.0"),
    ],
)
def test_gpus_by_name(name: str, capability: str) -> None:
    (card,) = cards_named([name], TABLES) or ()
    assert card.capability == capability


def test_several_gpus_none_and_unknown_ones() -> None:
    assert cards_named([], TABLES) is None
    assert cards_named(["None"], TABLES) == ()
    assert len(cards_named(["8.0,H100", "8.9"], TABLES) or ()) == 3
    for name in ("Voodoo 2", "", "none,8.9"):
        with pytest.raises(GpuNameError, match="compute capability"):
            cards_named([name], TABLES)


@each(
    ("name", "driver", "capability"),
    [
        ("NVIDIA GeForce GT 710", "470.256.02", "3.5"),  # branch 390 was the last for Fermi
        ("gt710", "470", "3.5"),
        ("GT 730", "470.256.02", "3.5"),  # Kepler either way: no build has code for it
        ("GeForce GT 1030", "535.183.01", "6.1"),
        ("GTX 860M", "580.95.05", "5.0"),
    ],
)
def test_a_name_of_several_gpus_is_settled_by_the_driver(
    name: str, driver: str, capability: str
) -> None:
    notes: list[str] = []
    (card,) = cards_named([name], TABLES, NamedFor(driver=driver, notes=notes)) or ()
    assert card == Card(name, capability)
    assert "can be several GPUs" in "".join(notes)


def test_a_name_of_several_gpus_names_them() -> None:
    for driver in (None, "470.256.02"):
        with pytest.raises(GpuNameError, match=r"several GPUs \(sm_30 or sm_50\)"):
            cards_named(["GTX 860M"], TABLES, NamedFor(driver=driver))


def test_a_gpu_of_another_maker_is_left_out_beside_one_of_nvidia() -> None:
    notes: list[str] = []
    names = ["RTX 3060 Laptop GPU", "AMD Radeon Graphics", "Intel UHD Graphics"]
    (card,) = cards_named(names, TABLES, NamedFor(notes=notes)) or ()
    assert card.capability == "8.6"
    assert [note.split(" was left out")[0] for note in notes] == names[1:]
    with pytest.raises(GpuNameError, match="of AMD"):
        cards_named(["Radeon RX 7900 XTX", "Intel Arc A770"], TABLES)


@pytest.mark.exhaustive
def test_every_generation_driver_python_and_system_gets_a_build_that_fits_or_a_reason() -> None:
    capabilities = [
        row.compute_capability
        for row in TABLES.get(GpuArchitectures).rows
        if numbers(row.compute_capability) >= (3, 5)
    ]
    branches = [row.branch for row in TABLES.get(DriverBranches).rows]
    platforms = ("linux_x86_64", "windows")
    found = 0
    for platform, capability, branch, python in itertools.product(
        platforms, capabilities, branches, PYTHONS
    ):
        answer = recommend(
            Card(capability, capability), platform=platform, driver=branch, python=python
        )
        assert answer.reasons
        if answer.best is not None:
            found += 1
            _assert_it_fits(answer.best, capability, branch, python)
    assert found > 1000


def _assert_it_fits(offer: Offer, capability: str, branch: str, python: str) -> None:
    machine = MachineLimits(offer.platform, (capability,), branch)
    release = TABLES.get(TorchReleases).release(offer.torch)
    row = TABLES.get(TorchBuilds).build(offer.torch, offer.cuda, offer.platform)
    assert release is not None
    assert row is not None
    assert row.available
    assert python in release.pythons[offer.platform]
    assert fits_driver(TABLES, offer.cuda, machine)
    assert fits_gpus(TABLES, row, machine) is Runs.CUBIN
    last = TABLES.get(GpuArchitectures).last_driver_branch(capability)
    assert last is None or int(branch) <= last


P100 = Card("P100", "6.0")


def test_a_gpu_that_a_mask_hides_counts() -> None:
    found = recommend(H100, driver="580.95.05", hidden=(GTX_1080,))
    assert best(found).build == "cu126"
    assert found.left_out == ()


def test_where_no_build_fits_all_the_hidden_gpu_is_left_out_by_name() -> None:
    found = recommend(RTX_5090, driver="580.95.05", hidden=(P100, H100))
    assert best(found) == best(recommend(RTX_5090, driver="580.95.05"))
    (sentence,) = found.left_out
    assert "leaves out P100 (sm_60), which CUDA_VISIBLE_DEVICES hides" in sentence
    assert "H100" not in sentence


def test_where_not_even_the_visible_gpus_get_a_build_the_reason_is_theirs() -> None:
    text = why_nothing(recommend(H100, python="2.7", driver="580", hidden=(GTX_1080,)))
    assert "It would fit with Python 3.11" in text
    assert "GTX 1080" not in text


def test_inside_wsl_the_driver_is_that_of_windows() -> None:
    linux = {"driver": "527.37", "torch": "2.6"}
    assert best(recommend(H100, **linux)).build == "cu124"
    wsl = recommend(H100, **linux, driver_os="windows")
    assert best(wsl).build == "cu118"
    text = why_nothing(recommend(H100, driver="527.37", torch="2.6+cu124", driver_os="windows"))
    assert "driver 527.41 or newer" in text


@pytest.fixture
def bounded(tmp_path: Path) -> Recommender:
    """Return what recommends by tables without any sourced first branch."""
    for path in tables_dir().iterdir():
        text = path.read_text(encoding="utf-8")
        if path.name == "gpu_architectures.json":
            text = re.sub(r'"first_driver_branch": [0-9]+, ', "", text)
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    return Recommender(Tables(tmp_path))


def test_a_driver_older_than_the_first_compiler_of_a_gpu_is_not_taken_for_granted(
    bounded: Recommender,
) -> None:
    ada = Situation(cards=(Card("RTX 4090", "8.9"),), platform="linux_x86_64", python="3.12")
    words = why_nothing(bounded.recommend(replace(ada, driver="470.256.02")))
    assert "is not known to support" in words
    assert "11.8" in words
    served = replace(ada, driver="470.256.02", driver_serves=True)
    assert best(bounded.recommend(served)).build == "cu118"
    assert best(bounded.recommend(replace(ada, driver="525.147.05"))).torch


def test_the_bound_is_the_least_driver_that_is_named(bounded: Recommender) -> None:
    gb10 = Situation(cards=(Card("GB10", "12.1"),), platform="linux_x86_64", driver="550.54.14")
    words = why_nothing(bounded.recommend(replace(gb10, torch="2.9.1+cu128")))
    assert "is not known to support" in words
    assert "torch 2.9.1 (cu128) would fit with driver 575 or newer" in words


V100 = Card("V100", "7.0")


def test_volta_and_blackwell_share_builds_but_no_kernel_modules() -> None:
    found = recommend(V100, RTX_5090, driver="580.95.05")
    assert best(found).torch == "2.10.0"
    assert any("only one kind can be loaded" in note for note in found.notes)
    for other in (
        recommend(V100, H100, driver="580.95.05"),
        recommend(V100, RTX_5090, driver="580.95.05", platform="windows"),
        recommend(V100, RTX_5090, driver="580.95.05", driver_os="windows"),
        recommend(V100, RTX_5090, driver="580.95.05", driver_serves=True),
    ):
        assert not any("kernel modules" in note for note in other.notes)


def test_of_a_release_newer_than_the_tables_the_way_to_newer_ones_is_said() -> None:
    for newer in ("2.99", "==2.99.1+cu140", ">=3"):
        assert "gpucheck tables update" in why_nothing(recommend(H100, driver="580", torch=newer))
    for older in ("0.4", "2.4.9", "1.99"):
        assert "update" not in why_nothing(recommend(H100, driver="580", torch=older))
