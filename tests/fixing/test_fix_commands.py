import os
from pathlib import Path

import pytest
from each import each

from gpucheck.fixing.permitted import Place, runnable

PLACE = Place(
    python="/env/bin/python", prefix="/env", packages=("/env/lib",), scripts="/env/bin",
    home="/env/.gpucheck", kind="venv",
)  # fmt: skip
PIP = "/env/bin/python -m pip"


@each(
    ("text", "action", "names"),
    [
        (f"{PIP} uninstall -y torch torchvision", "remove", {"torch", "torchvision"}),
        (f"{PIP} install torch==2.6.0 --index-url https://x.org/whl/cu126", "install", {"torch"}),
        (f"{PIP} install 'numpy<2'", "install", {"numpy"}),
        (f"{PIP} install --force-reinstall --no-deps nvidia_cudnn_cu12==9.1.0.70", "install",
         {"nvidia-cudnn-cu12"}),
        ("uv pip install --python /env/bin/python torch==2.6.0", "install", {"torch"}),
        ("uv pip uninstall --python /env/bin/python torch", "remove", {"torch"}),
        ("conda remove -y --force -p /env pytorch", "remove", {"pytorch"}),
        ("conda install -p /env torchvision=0.21", "install", {"torchvision"}),
        ("/env/bin/python -m ensurepip", "pip", set()),
    ],
)  # fmt: skip
def test_what_may_be_run(text: str, action: str, names: set[str]) -> None:
    found = runnable(text, PLACE)
    assert found is not None
    assert (found.action, set(found.names)) == (action, names)


@each(
    "text",
    [
        "sudo apt-get install -y cuda-drivers",
        "sudo reboot",
        "nvidia-smi",
        "export PYTHONNOUSERSITE=1",
        "ulimit -l unlimited",
        "docker run --gpus all ...",
        "kill 17",
        "env -u PYTHONNOUSERSITE /env/bin/python -m pip uninstall -y torch",
        f"sudo {PIP} install torch",
        f"{PIP} install torch; rm -rf /",
        f"{PIP} install torch && reboot",
        f"{PIP} install torch | tee log",
        f"{PIP} install torch > log",
        f"{PIP} install $(cat names)",
        f"{PIP} install `names`",
        f"{PIP} install numpy<2",
        f"{PIP} install torch*",
        f"{PIP} install ~/torch.whl",
        f"{PIP} install 'torch",
        f"{PIP} install --target /elsewhere torch",
        f"{PIP} install --index-url file:///x torch",
        f"{PIP} install -r names.txt",
        f"{PIP} install git+https://x.org/torch",
        f"{PIP} install https://x.org/torch.whl",
        f"{PIP} install",
        f"{PIP} download torch",
        f"{PIP} list",
        f"{PIP} install --no-build-isolation --force-reinstall --no-deps .",
        "python -m pip install torch",
        "/other/bin/python -m pip install torch",
        "pip install torch",
        "uv pip install --python /other/bin/python torch",
        "uv pip install torch",
        "uv venv gpu-env",
        "conda install -p /other torchvision=0.21",
        "conda install torchvision=0.21",
        "conda run -p /env python",
        "/env/bin/python -m venv gpu-env",
        "/env/bin/python -c 'import torch'",
        "/env/bin/python setup.py",
        "mv /etc/hosts /etc/hosts.old",
        "chmod -R a+rX /env/lib",
        "",
    ],
)
def test_what_is_never_run(text: str) -> None:
    assert runnable(text, PLACE) is None


def test_conda_is_never_left_to_ask() -> None:
    found = runnable("conda install -p /env torchvision=0.21", PLACE)
    assert found is not None
    assert found.argv[-1] == "-y"


def test_a_file_of_the_user_is_renamed_in_its_folder_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    own, other = tmp_path / "torch.py", tmp_path / "inner"
    own.touch()
    other.mkdir()
    assert runnable(f"mv {own} {tmp_path}/not_torch.py", PLACE) is not None
    assert runnable(f"mv {own} {other}/not_torch.py", PLACE) is None
    assert runnable(f"mv {tmp_path}/absent.py {tmp_path}/not_torch.py", PLACE) is None
    (tmp_path / "not_torch.py").touch()
    assert runnable(f"mv {own} {tmp_path}/not_torch.py", PLACE) is None


def test_a_file_of_another_user_is_not_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").touch()
    monkeypatch.chdir(tmp_path)
    assert runnable(f"mv {tmp_path}/torch.py {tmp_path}/not_torch.py", PLACE) is not None
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert runnable(f"mv {tmp_path}/torch.py {tmp_path}/not_torch.py", PLACE) is None
