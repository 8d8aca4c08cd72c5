"""The wheel_hashes section: contents of libraries against the hashes that RECORD holds."""

import base64
import hashlib
from pathlib import Path

from each import each
from support import machine

from gpucheck.facts.request import Request
from gpucheck.facts.torch import DamagedLibrary, Interpreter, NvidiaWheels, WheelHashes
from gpucheck.probes.wheel_hashes import collect

SITE = "/home/user/venv/lib/python3.11/site-packages"
PYTHON = Interpreter(status="ok", sys_path=[SITE], kind="venv")
CUDNN = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
NCCL = f"{SITE}/nvidia/nccl/lib/libnccl.so.2"
WHOLE = NvidiaWheels(damaged=[], shared=[])


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def hashed(content: bytes, algorithm: str = "sha256") -> str:
    summed = hashlib.new(algorithm, content).digest()
    return f"{algorithm}={base64.urlsafe_b64encode(summed).decode().rstrip('=')}"


def record(path: str, recorded: str) -> str:
    return f"{path[len(SITE) + 1 :]},{recorded},4\nx.dist-info/RECORD,,\n"


def compared(
    folder: Path,
    records: dict[str, str],
    found: dict[str, str],
    wheels: NvidiaWheels = WHOLE,
    *,
    seconds: float = 5.0,
    problems: dict[str, str] | None = None,
) -> WheelHashes:
    """Compare; ``records``: wheel to its RECORD, ``found``: path to the SHA-256 of what is there.

    A path without one cannot be summed up.
    """
    files = {f"{SITE}/{wheel}.dist-info/RECORD": text for wheel, text in records.items()}
    host = machine(
        folder,
        files={**files, CUDNN: b"1234", NCCL: b"1234"},
        host={"sha256": found, "problems": problems or {}},
    )
    return collect(host, Request(hash_seconds=seconds), PYTHON, wheels)


def test_nothing_is_read_unless_it_was_asked_for(tmp_path: Path) -> None:
    section = compared(
        tmp_path,
        {"nvidia_cudnn_cu12-9.10.2.21": record(CUDNN, hashed(b"abcd"))},
        {CUDNN: digest(b"1234")},
        seconds=0.0,
    )
    assert (section.compared, section.altered) == (None, None)
    assert "-v" in section.problem("altered")


def test_the_same_content(tmp_path: Path) -> None:
    section = compared(
        tmp_path,
        {"nvidia_cudnn_cu12-9.10.2.21": record(CUDNN, hashed(b"1234"))},
        {CUDNN: digest(b"1234")},
    )
    assert (section.compared, section.altered, section.left_out) == (1, [], "")


def test_another_content_of_the_same_size(tmp_path: Path) -> None:
    section = compared(
        tmp_path,
        {"nvidia_cudnn_cu12-9.10.2.21": record(CUDNN, hashed(b"1234"))},
        {CUDNN: digest(b"1x34")},
    )
    (altered,) = section.altered or []
    assert (altered.project, altered.version, altered.library, altered.path) == (
        "nvidia-cudnn-cu12", "9.10.2.21", "libcudnn.so.9", CUDNN,
    )  # fmt: skip
    assert altered.sha256 == digest(b"1x34")


def test_a_file_of_two_wheels_may_be_either_of_them(tmp_path: Path) -> None:
    records = {
        "nvidia_nccl_cu12-2.29.3": record(NCCL, hashed(b"1234")),
        "nvidia_nccl_cu13-2.29.3": record(NCCL, hashed(b"abcd")),
    }
    for content in (b"1234", b"abcd"):
        assert compared(tmp_path, records, {NCCL: digest(content)}).altered == []
    assert compared(tmp_path, records, {NCCL: digest(b"xxxx")}).altered


def test_what_is_known_to_be_damaged_is_not_read(tmp_path: Path) -> None:
    section = compared(
        tmp_path,
        {"nvidia_cudnn_cu12-9.10.2.21": record(CUDNN, hashed(b"1234"))},
        {CUDNN: digest(b"1x34")},
        NvidiaWheels(damaged=[DamagedLibrary(path=CUDNN, state="changed")]),
    )
    assert (section.compared, section.altered) == (0, [])


@each("recorded", ["", "sha256=", "sha256=abc", "sha256=*", "md5=abc", hashed(b"1234", "sha512")])
def test_a_hash_that_is_not_understood_is_left_out(tmp_path: Path, recorded: str) -> None:
    section = compared(
        tmp_path,
        {"nvidia_cudnn_cu12-9.10.2.21": record(CUDNN, recorded)},
        {CUDNN: digest(b"1234")},
    )
    assert (section.compared, section.altered) == (0, [])
    assert "libcudnn.so.9: no SHA-256 is recorded" in (section.left_out or "")


def test_what_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    section = compared(
        tmp_path,
        {
            "nvidia_cudnn_cu12-9.10.2.21": record(CUDNN, hashed(b"1234")),
            "nvidia_nccl_cu12-2.29.3": record(NCCL, hashed(b"1234")),
        },
        {CUDNN: digest(b"1234")},
        problems={NCCL: "EIO: Input/output error"},
    )
    assert (section.compared, section.altered) == (1, [])
    assert section.left_out == "1 left out, such as libnccl.so.2: EIO: Input/output error"


def test_time_that_is_over_leaves_the_rest_out(tmp_path: Path) -> None:
    section = compared(
        tmp_path,
        {"nvidia_cudnn_cu12-9.10.2.21": record(CUDNN, hashed(b"1234"))},
        {CUDNN: digest(b"1x34")},
        seconds=1e-9,
    )
    assert (section.compared, section.altered) == (0, [])
    assert "the time is over" in (section.left_out or "")


def test_without_wheels_to_compare_the_reason_is_told(tmp_path: Path) -> None:
    section = compared(tmp_path, {}, {}, NvidiaWheels(problems={"*": "no interpreter"}))
    assert section.altered is None
    assert section.problem("altered") == "no interpreter"
