"""``gpucheck compat`` takes values as other programs print them, and helps with mistyped keys."""

import pytest
from each import each

from gpucheck.describe.keys import GivenError, read_object, read_words


@each(
    ("word", "value"),
    [
        ("compute_mode=Exclusive_Process", "exclusive-process"),
        ("compute_mode=E. Process", "exclusive-process"),
        ("compute_mode=EXCLUSIVE_PROCESS", "exclusive-process"),
        ("compute_mode=Default", "default"),
        ("cuda_compat=cuda-compat-13-0", "13.0"),
        ("cuda_compat=cuda-compat-12-8=570.86.15-1", "12.8"),
        ("cuda_compat=12.8", "12.8"),
        ("torch=torch==2.9.1+cu128", "2.9.1+cu128"),
        ("torch=v2.9.1", "2.9.1"),
        ("python=Python 3.12.4", "3.12.4"),
        ("os=Linux", "linux"),
        ("os=WSL", "wsl2"),
        ("torch_source=PyPI", "pypi"),
        ("kernel_module=Open", "open"),
        ("nvidia_packages=nvidia-cudnn-cu12 9.1.0.70", "nvidia-cudnn-cu12==9.1.0.70"),
        ("nvidia_packages=nvidia-cudnn-cu12   9.1.0.70", "nvidia-cudnn-cu12==9.1.0.70"),
        ("Driver=535.104.05", "535.104.05"),
        ("gpu-count=8", "8"),
    ],
)
def test_a_value_is_read_as_it_is_pasted(word: str, value: str) -> None:
    assert list(read_words([word]).values()) == [[value]]


@each(
    "packages",
    [
        {"nvidia-cudnn-cu12": "9.1.0.70", "nvidia-nccl-cu12": "2.21.5"},
        [
            {"name": "nvidia-cudnn-cu12", "version": "9.1.0.70"},
            {"name": "nvidia-nccl-cu12", "version": "2.21.5"},
        ],
        "nvidia-cudnn-cu12==9.1.0.70,nvidia-nccl-cu12==2.21.5",
    ],
)
def test_packages_may_be_an_object_or_what_pip_lists(packages: object) -> None:
    given = read_object({"nvidia_packages": packages})
    assert given["nvidia_packages"] == ["nvidia-cudnn-cu12==9.1.0.70", "nvidia-nccl-cu12==2.21.5"]


@each("packages", [{"nvidia-nccl-cu12": 2}, [{"version": "1"}], {"": "1.0"}])
def test_an_object_that_lists_no_packages_is_refused(packages: object) -> None:
    with pytest.raises(GivenError, match="nvidia_packages"):
        read_object({"nvidia_packages": packages})


@each(
    ("word", "meant"),
    [
        ("gpuu=RTX 4090", "Did you mean gpu"),
        ("cuda_driver=12.2", "Did you mean .*driver_cuda"),
        ("compute_cap=8.9", "Did you mean compute_capability"),
        ("torch_sourc=pypi", "Did you mean torch_source"),
        ("torch_source=piypi", "Did you mean pypi"),
        ("compute_mode=exclusive", "Did you mean exclusive-"),
    ],
)
def test_what_was_probably_meant_is_named(word: str, meant: str) -> None:
    with pytest.raises(GivenError, match=meant) as refused:
        read_words([word])
    assert "row_remap_pending" not in str(refused.value)  # the list of keys is for the others


def test_a_key_like_no_other_gets_the_list() -> None:
    with pytest.raises(GivenError, match=r"The keys are action, .*cudnn\."):
        read_words(["xyzzy=1"])
