# ruff: noqa: PLW0108  # a lambda: an attribute that is missing is an answer, too
"""What torch, nvidia-smi, CUDA's compiler and the system say, without any code of gpucheck.

    PYTHON_WITH_TORCH benchmarks/on_a_gpu_ask.py

It prints one line of JSON. A question that raises is told in ``errors``, and its key is missing.
"""

import ctypes
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import resource
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

ERRORS: dict[str, str] = {}
SMI_FIELDS = (
    "driver_version", "name", "uuid", "pci.bus_id", "pci.device_id", "vbios_version", "inforom.img",
    "compute_cap", "memory.total", "memory.used", "ecc.mode.current", "ecc.mode.pending",
    "ecc.errors.corrected.volatile.total", "ecc.errors.uncorrected.volatile.total",
    "ecc.errors.uncorrected.aggregate.total", "mig.mode.current", "mig.mode.pending",
    "compute_mode", "persistence_mode", "pcie.link.gen.max", "pcie.link.width.max",
    "pcie.link.width.current", "power.limit", "power.default_limit", "power.draw",
    "clocks.max.sm", "clocks.applications.graphics", "clocks.default_applications.graphics",
    "temperature.gpu",
)  # fmt: skip
_SECONDS = 20.0


def said(*command: str) -> str | None:
    """Return what a program prints; None if it cannot be run or fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def answers(questions: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Return the answer to each question that has one."""
    found = {}
    for name, question in questions.items():
        try:
            answer = question()
        except Exception as error:  # noqa: BLE001  # an answer that is missing is unknown
            ERRORS[name] = f"{type(error).__name__}: {error}"[:300]
        else:
            if answer is not None:
                found[name] = answer
    return found


def smi() -> dict[str, list[str]]:
    """Return what nvidia-smi says of each GPU, by field; a field that it does not know is missing.

    All fields are asked at once. A driver that refuses the query because of one of them is asked
    for one after the other.
    """
    found = _smi(SMI_FIELDS)
    for field in () if found or said("nvidia-smi", "-L") is None else SMI_FIELDS:
        found |= _smi((field,))
    return found


def _smi(fields: tuple[str, ...]) -> dict[str, list[str]]:
    text = said("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
    rows = [[cell.strip() for cell in line.split(",")] for line in (text or "").splitlines()]
    rows = [row for row in rows if len(row) == len(fields)]
    return {field: [row[at] for row in rows] for at, field in enumerate(fields) if rows}


def system() -> dict[str, Any]:
    """Return what Python's standard library says of the machine."""
    return answers(
        {
            "kernel": lambda: os.uname().release,
            "distribution": lambda: platform.freedesktop_os_release()["ID"],
            "distribution_version": lambda: platform.freedesktop_os_release()["VERSION_ID"],
            "glibc": lambda: platform.libc_ver(lib="glibc")[1] or None,
            "uid": os.getuid,
            "memory": lambda: os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            "memlock": lambda: resource.getrlimit(resource.RLIMIT_MEMLOCK)[0],
            "open_files": lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            "shm": lambda: _size("/dev/shm"),  # noqa: S108  # a mount, no file of ours
            "nodes": _nodes,
            "nodes_that_open": lambda: [path for path in _nodes() if _opens(path)],
            "module_release": _module_release,
            "pci_gpus": _pci_gpus,
            "xids": _xids,
            "driver_cuda": _driver_cuda,
            "CUDA_VISIBLE_DEVICES": lambda: os.environ.get("CUDA_VISIBLE_DEVICES"),
            "LD_LIBRARY_PATH": lambda: os.environ.get("LD_LIBRARY_PATH"),
        }
    )


def _size(folder: str) -> int:
    seen = os.statvfs(folder)
    return seen.f_frsize * seen.f_blocks


def _nodes() -> list[str]:
    found = (
        path for pattern in ("nvidia*", "nvidia-caps/*") for path in Path("/dev").glob(pattern)
    )
    return sorted(str(path) for path in found if not path.is_dir())


def _opens(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return False
    return True


def _module_release() -> str | None:
    text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    found = re.search(r"\s(\d{3}(?:\.\d+){1,2})\s", text)
    return found[1] if found else None


def _pci_gpus() -> list[str]:
    """Return the addresses of NVIDIA's display and 3D controllers."""
    found = []
    for device in Path("/sys/bus/pci/devices").iterdir():
        vendor, kind = ((device / name).read_text().strip() for name in ("vendor", "class"))
        if vendor == "0x10de" and kind.startswith(("0x0300", "0x0302")):
            found.append(device.name)
    return sorted(found)


def _xids() -> int | None:
    text = said("dmesg")
    return None if text is None else text.count("NVRM: Xid")


def _driver_cuda() -> str:
    """Return the CUDA of the driver by its own library, which torch asks as well."""
    number = ctypes.c_int()
    code = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number))
    if code:
        raise OSError(f"cuDriverGetVersion answers {code}")
    return f"{number.value // 1000}.{number.value % 1000 // 10}"


def python() -> dict[str, Any]:
    """Return what this Python says of itself and of its packages."""
    return answers(
        {
            "executable": lambda: sys.executable,
            "version": platform.python_version,
            "soabi": lambda: sysconfig.get_config_var("SOABI"),
            "headers": lambda: (Path(sysconfig.get_path("include")) / "Python.h").is_file(),
            "packages": _packages,
        }
    )


def _packages() -> dict[str, str]:
    """Return the versions by normalised name; of two of one name the one that is imported."""
    found: dict[str, str] = {}
    for each in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", each.metadata["Name"] or "").lower()
        found.setdefault(name, each.version)
    return found


def of_torch(torch: Any) -> dict[str, Any]:  # noqa: ANN401  # the module
    """Return what torch says of its build, and of the GPUs that it sees.

    Each attribute is looked up in its question: another release may not have it.
    """
    cuda: Any = getattr(torch, "cuda", None)
    return answers(
        {
            "version": lambda: str(torch.__version__),
            "cuda": lambda: torch.version.cuda or "",
            "path": lambda: str(Path(torch.__file__).parent),
            "git_version": lambda: torch.version.git_version,
            "cxx11_abi": lambda: torch.compiled_with_cxx11_abi(),
            "cudnn": lambda: torch.backends.cudnn.version(),
            "nccl": lambda: ".".join(str(part) for part in cuda.nccl.version()[:3]),
            "arch_list": lambda: sorted(torch._C._cuda_getArchFlags().split()),  # noqa: SLF001
            "available": lambda: cuda.is_available(),
            "devices": lambda: [
                _device(each)
                for each in map(cuda.get_device_properties, range(cuda.device_count()))
            ],
            "sum": lambda: (
                float(torch.ones(9, device="cuda").sum()) if cuda.is_available() else None
            ),
            # Last: what is mapped now has been loaded by import torch and the questions above.
            "mapped": _mapped,
        }
    )


def _device(each: Any) -> dict[str, Any]:  # noqa: ANN401  # torch's properties of a device
    uuid = getattr(each, "uuid", None)
    return {
        "name": each.name,
        "capability": f"{each.major}.{each.minor}",
        "memory": each.total_memory,
        **({} if uuid is None else {"uuid": f"GPU-{uuid}"}),
    }


def _mapped() -> list[str]:
    text = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    paths = {line.split(maxsplit=5)[5] for line in text.splitlines() if ".so" in line}
    return sorted(os.path.realpath(path) for path in paths)


def toolkit() -> dict[str, Any]:
    """Return the toolkit that torch builds extensions with, and the release of its compiler."""
    home = importlib.import_module("torch.utils.cpp_extension").CUDA_HOME
    text = said(str(Path(home) / "bin" / "nvcc"), "--version") if home else None
    release = re.search(r"release (\d+\.\d+), V([\d.]+)", text or "")
    compiler = said("cc", "-dumpfullversion", "-dumpversion")
    return {
        "home": str(home or ""),
        **({"nvcc": release[1]} if release else {}),
        **({"cc": compiler.strip()} if compiler else {}),
    }


def main() -> int:
    """Ask everything and print the answers."""
    found: dict[str, Any] = {"smi": smi(), "system": system(), "python": python()}
    if importlib.util.find_spec("torch"):
        try:
            torch = importlib.import_module("torch")
        except Exception as error:  # noqa: BLE001  # a torch that cannot be imported is an answer
            ERRORS["torch"] = f"{type(error).__name__}: {error}"[:300]
        else:
            found |= {"torch": of_torch(torch), **answers({"toolkit": toolkit})}
    print("\n" + json.dumps({**found, "errors": ERRORS}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
