"""A patient for the launcher of self-tests: a fake torch in a folder, and self-tests of its own.

The fault lies under the worker, in what it imports and calls; launcher, zygote and runner are the
shipped ones.
"""

import os
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.machine import LiveHost
from gpucheck.selftests.launcher import Launcher
from gpucheck.selftests.plan import IMPORT, SelfTestHeader, Wish

_TORCH = """
import sys, types
{before}
__version__ = "9.9.9+fake"
version = types.SimpleNamespace(cuda={cuda!r})

class device:
    def __init__(self, name):
        self.name = str(name)
        self.type = self.name.split(":")[0]
    def __str__(self):
        return self.name

class _Two:
    def __add__(self, other):
        return self
    def sum(self):
        return 4.0

def ones(count):
    {ones}
    return _Two()

def set_num_threads(count):
    pass

class _Cuda:
    def is_available(self):
        return {gpus} > 0
    def device_count(self):
        return {gpus}
    def set_device(self, device):
        pass
    def init(self):
        raise RuntimeError({init!r})
    def get_device_properties(self, at):
        return types.SimpleNamespace(name="Fake GPU", major=9, minor=0, total_memory=1 << 30)

cuda = _Cuda()
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91002))

def _self_test(name, code):
    module = types.ModuleType(name)
    exec(code, module.__dict__)
    sys.modules["gpucheck_worker.selftests." + name.replace("-", "_")] = module

for _name, _code in {tests!r}.items():
    _self_test(_name, _code)
"""


class Patient:
    """A folder with a fake torch, and what the launcher makes of it.

    Args:
        folder: for the fake torch.
        monkeypatch: puts the folder on PYTHONPATH.
        before: code at the start of torch's own.
        ones: what ``torch.ones`` does first.
        gpus: how many CUDA devices torch sees.
        cuda: what torch was built for; "" is a CPU build.
        init: what ``torch.cuda.init()`` says.
        tests: name to the body of the self-test's ``run(bench)``.
        per: name to what it is run per, ``gpu`` unless said.
        sitecustomize: code that Python runs at its start.
    """

    def __init__(  # noqa: PLR0913  # every place where a patient may be ill
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        before: str = "",
        ones: str = "pass",
        gpus: int = 0,
        cuda: str = "",
        init: str = "no driver",
        tests: Mapping[str, str] | None = None,
        per: Mapping[str, str] | None = None,
        sitecustomize: str = "",
    ) -> None:
        bodies = {
            name: "import os, sys, time, signal, ctypes\n"
            "from gpucheck_worker.bench import Failed, Skipped\n"
            "def run(bench):\n" + textwrap.indent(body, "    ")
            for name, body in (tests or {}).items()
        }
        text = _TORCH.format(
            before=textwrap.dedent(before), ones=ones, gpus=gpus, cuda=cuda, init=init, tests=bodies
        )
        package = folder / "torch"
        package.mkdir()
        (package / "__init__.py").write_text(text)
        (package / "version.py").write_text(
            f"__version__ = '9.9.9+fake'\ncuda = {cuda or None!r}\nhip = None\n"
        )
        if sitecustomize:
            (folder / "sitecustomize.py").write_text(sitecustomize)
        monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        self._names = (IMPORT, *bodies)
        self._per = dict(per or {})

    def examine(
        self,
        wish: Wish | None = None,
        *,
        seconds: float = 20.0,
        unfit: Mapping[str, str] | None = None,
        forks: bool = True,
        python: str = sys.executable,
    ) -> SelfTests:
        """Run every self-test; ``seconds`` is the deadline of each."""
        headers = {
            name: SelfTestHeader(
                name=name,
                per=self._per.get(name, "machine" if name == IMPORT else "gpu"),  # type: ignore[arg-type]
                levels=("quick",),
                about="",
                seconds={"quick": seconds},
            )
            for name in self._names
        }
        launcher = Launcher(
            LiveHost().supervise, python, wish or Wish(), headers, unfit=unfit, forks=forks
        )
        return launcher.run()


def by_name(found: SelfTests, name: str) -> SelfTest:
    """Return the only result of this test."""
    (result,) = [result for result in found.results or () if result.name == name]
    return result
