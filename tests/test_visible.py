import pytest
from each import each

from gpucheck.derived.gpus import read_mask

UUIDS = [
    "GPU-8a2f3c61-0b8d-4c39-9d2b-7f3f4c1e5a90",
    "GPU-8a2f3c61-ffff-4c39-9d2b-7f3f4c1e5a91",
    "GPU-1b2f3c61-0b8d-4c39-9d2b-7f3f4c1e5a92",
]


@each(
    ("value", "chosen", "lost"),
    [
        ("0", (0,), ()),
        ("2,0", (2, 0), ()),
        (" 1 , 2 ", (1, 2), ()),
        ("1gpu", (1,), ()),
        ("+1", (1,), ()),
        ("-1", (), ()),
        ("-1,0", (), ("0",)),
        ("0,-1,1", (0,), ("1",)),
        ("0,", (0,), ()),
        ("0,,1", (0,), ("1",)),
        (",0", (), ("0",)),
        ("3", (), ("3",)),
        ("0,3,1", (0,), ("3", "1")),
        ("all", (), ("all",)),
        ("0,all", (0,), ("all",)),
        ("0,0", (), ("0", "0")),
        ("0;1", (0,), ()),
        ("99999999999999999999", (), ("99999999999999999999",)),
        ("NoDevFiles", (), ("NoDevFiles",)),
        ("0x1", (0,), ()),
    ],
)
def test_indices(value: str, chosen: tuple[int, ...], lost: tuple[str, ...]) -> None:
    mask = read_mask(value, 3, UUIDS)
    assert mask.kind == "indices"
    assert mask.chosen == chosen
    assert mask.lost == lost
    assert bool(mask.bad) == bool(mask.why)


def test_unset_and_empty_are_opposites() -> None:
    assert read_mask(None, 3, UUIDS).chosen == (0, 1, 2)
    for value in ("", "   "):
        mask = read_mask(value, 3, UUIDS)
        assert (mask.kind, mask.chosen) == ("empty", ())


@each(
    ("value", "chosen", "why"),
    [
        (UUIDS[1], (1,), ""),
        (f"{UUIDS[2]},{UUIDS[0]}", (2, 0), ""),
        ("GPU-1b", (2,), ""),
        ("GPU-8a2f3c61", (), "several"),
        ("GPU-deadbeef", (), "no GPU"),
        (f"{UUIDS[0]},1", (0,), "no GPU"),
        (f"{UUIDS[0]},{UUIDS[0]}", (), "twice"),
        (f"{UUIDS[0]},", (0,), "empty"),
    ],
)
def test_uuids(value: str, chosen: tuple[int, ...], why: str) -> None:
    mask = read_mask(value, 3, UUIDS)
    assert mask.kind == "uuids"
    assert mask.chosen == chosen
    assert why in mask.why
    assert bool(mask.why) == bool(why)


def test_an_index_before_a_uuid_ends_there() -> None:
    mask = read_mask(f"0,{UUIDS[1]}", 3, UUIDS)
    assert mask.chosen == (0,)
    assert mask.lost == (UUIDS[1],)


def test_a_trailing_comma_after_a_uuid_loses_nothing() -> None:
    assert read_mask(f"{UUIDS[0]},", 3, UUIDS).lost == ()


def test_mig_names_are_left_to_those_who_know_them() -> None:
    mask = read_mask("MIG-11111111-aaaa,MIG-2", 3, UUIDS)
    assert (mask.kind, mask.chosen) == ("mig", ())


def test_no_gpu_at_all() -> None:
    assert "no GPU" in read_mask("0", 0, []).why


@pytest.mark.hostile
def test_a_hostile_value_is_read_in_time() -> None:
    mask = read_mask(",".join(["0" * 40] * 50_000), 3, UUIDS)
    assert mask.chosen == ()
