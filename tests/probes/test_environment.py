"""The variables that are kept, and those that never are."""

from pathlib import Path

import pytest
from each import each
from support import machine

from gpucheck.facts.system import HIDDEN, OTHER_NAMES, PATH_NAMES
from gpucheck.machine import LiveHost
from gpucheck.probes.environment import collect


def kept(tmp_path: Path, **env: str) -> dict[str, str]:
    variables = collect(machine(tmp_path, env=env)).variables
    assert variables is not None
    return variables


def test_only_listed_names_are_kept(tmp_path: Path) -> None:
    env = {
        "CUDA_VISIBLE_DEVICES": "",
        "NCCL_P2P_DISABLE": "1",
        "NCCL_MY_TOKEN": "hunter2",
        "AWS_SECRET_ACCESS_KEY": "x",
        "HF_TOKEN": "hf_x",
        "SLURM_JWT": "x",
    }

    variables = kept(tmp_path, **env)

    assert variables == {"CUDA_VISIBLE_DEVICES": "", "NCCL_P2P_DISABLE": "1"}


def test_unset_and_empty_differ(tmp_path: Path) -> None:
    environment = collect(machine(tmp_path, env={"CUDA_VISIBLE_DEVICES": ""}))

    assert environment.get("CUDA_VISIBLE_DEVICES") == ""
    assert environment.get("CUDA_HOME") is None
    assert environment.source("variables")


@each(
    ("name", "value"),
    [
        ("LD_LIBRARY_PATH", "/nix/store/0c5b8vw40d1178xlpddw65q9gf1h2186a-glibc-2.38/lib:/opt/x"),
        ("CUDA_HOME", "/opt/spack/cuda-12.2.0-abcdefghijklmnopqrstuvwxyz012345"),
        ("PYTHONPATH", "/home/ann/tokenizers:/srv/secrets/lib"),
        ("CUDA_VISIBLE_DEVICES", "GPU-8f6d1f0e-3b1c-4c0a-9d5e-0a1b2c3d4e5f,1"),
        ("CUDA_VISIBLE_DEVICES", "MIG-8f6d1f0e-3b1c-4c0a-9d5e-0a1b2c3d4e5f"),
        ("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1"),
        ("PYTORCH_CUDA_ALLOC_CONF", "graph_capture_record_stream_reuse:True,max_split_size_mb:128"),
        ("TORCH_CUDA_ARCH_LIST", "7.0 7.5 8.0 8.6 8.9 9.0+PTX"),
        ("NVIDIA_REQUIRE_CUDA", "cuda>=12.4 brand=tesla,driver>=470,driver<471"),
        ("MASTER_ADDR", "node-0017.cluster.example"),
    ],
)
def test_ordinary_values_stay(tmp_path: Path, name: str, value: str) -> None:
    assert kept(tmp_path, **{name: value}) == {name: value}


@each(
    ("name", "value"),
    [
        ("CUDA_VISIBLE_DEVICES", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
        ("NCCL_DEBUG", "d41d8cd98f00b204e9800998ecf8427e"),
        ("MASTER_ADDR", "http://ann:hunter2@proxy:3128"),
        ("NCCL_NET_PLUGIN", "password=hunter2"),
        ("PYTHONPATH", "https://x?token=abc"),
        ("LD_LIBRARY_PATH", "ftp://ann:hunter2@host/lib"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(tmp_path: Path, name: str, value: str) -> None:
    assert kept(tmp_path, **{name: value}) == {name: HIDDEN}


def test_long_values_are_cut(tmp_path: Path) -> None:
    assert len(kept(tmp_path, LD_LIBRARY_PATH="/opt:" * 5000)["LD_LIBRARY_PATH"]) == 4096


def test_bytes_that_are_no_text_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/opt/\udce9t\udce9")

    assert collect(LiveHost()).get("PYTHONPATH") == "/opt/?t?"


def test_names_are_listed_once_and_whole() -> None:
    names = PATH_NAMES + OTHER_NAMES

    assert len(set(names)) == len(names)
    assert all(name.replace("_", "").isalnum() for name in names)
