"""The GPUs and the driver of a machine that the user describes."""

from gpucheck.advice.situations import NamedFor, left_out_of_other, of_others, one_of_several
from gpucheck.describe.keys import Given, GivenError
from gpucheck.describe.libraries import read_cuda_compat, refuse_other_capability, refuse_other_kind
from gpucheck.facts.base import Draft, Drafts
from gpucheck.facts.driver import (
    CudaDriver,
    DeviceNode,
    DeviceNodes,
    Driver,
    DriverLibrary,
    GpuProcess,
    KernelLog,
    Nvml,
    NvmlGpu,
    XidEvent,
)
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.system import Pci, PciGpu, System
from gpucheck.findings.programs import APPLICATION_BUG
from gpucheck.language import in_series, in_turn, listed, say
from gpucheck.tables import Tables
from gpucheck.tables.driver import DriverBranches, DriverSupport
from gpucheck.tables.error_codes import CudaErrors, NvmlErrors
from gpucheck.tables.gpus import GpuArchitectures, GpuProducts, capability_of, spellings
from gpucheck.tables.jetson import Jetpacks
from gpucheck.tables.meant_products import meant_by, of_other_vendor, unlisted

_OF_CUINIT = (0, 34, 100, 214, 220, 304, 802, 803, 804, 999)
"""Results that ``cuInit`` itself returns; others come from programs that are already running."""
_OFF_THE_BUS = 79  # the Xid of a GPU that has fallen off the bus (the table xid)
_LIBRARY_NOT_FOUND = 12  # NVML_ERROR_LIBRARY_NOT_FOUND and NVML_ERROR_GPU_IS_LOST of nvml.h
_OF_ONE_GPU = (14, 15, 16)
"""NVML's codes about one GPU: corrupted infoROM, lost, needs a reset."""
_LOST = 15  # NVML_ERROR_GPU_IS_LOST of nvml.h
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE of cuda.h


class _Gpu:
    """One described GPU: its name ("" if not given), its capability, and where both were given."""

    def __init__(self, at: int, name: str, capability: str | None, source: str) -> None:
        self.at = at
        self.name = name
        self.capability = capability
        self.source = source
        self.place = f"gpu {at}"
        """Replaces the PCI address: the same in every section, but not a real address."""


_MOST_HINTS = 4
"""Unknown names for which a similar one is looked up, which takes a hundredth of a second each."""


class GpuReader:
    """Reads the GPU and driver keys into ``pci``, ``nvml``, ``cuda_driver`` and ``driver``."""

    def __init__(self, given: Given, drafts: Drafts, tables: Tables) -> None:
        self._given = given
        self._drafts = drafts
        self._tables = tables
        self._hints = _MOST_HINTS
        self._others: list[str] = []
        self._gpus = self._described()

    def capabilities(self) -> list[str]:
        """Return the known compute capabilities."""
        return [gpu.capability for gpu in self._gpus or () if gpu.capability]

    def describe(self, unread: dict[str, str]) -> None:
        """Fill the sections; ``unread`` gets the values that this version cannot interpret."""
        self._bus()
        self._driver_files()
        self._cuda_error(unread)
        self._nvml(unread)
        self._log()
        if self._others:
            unread["gpu"] = in_series([left_out_of_other(name) for name in self._others])
        if self._gpus is not None:
            names = [gpu.name for gpu in self._gpus]
            refuse_other_kind(self._given, self._tables, names)
            read_cuda_compat(self._given, self._drafts, self._tables, names)

    def _source(self, key: str) -> str:
        return say("as given: {key}={given}", key=key, given=",".join(self._given[key]) or "none")

    def _first(self, key: str) -> str:
        values = self._given.get(key)
        return values[0] if values else ""

    def _is_absent(self, key: str) -> bool:
        """Whether a key states that something does not exist."""
        return key in self._given and self._given[key] in ([], ["false"], ["0"])

    def _described(self) -> list[_Gpu] | None:
        """Return the GPUs; None if the input mentions none, [] if it says that there are none."""
        given = self._given
        keys = [key for key in ("gpu", "compute_capability", "gpu_count") if key in given]
        absent = [key for key in keys if self._is_absent(key)]
        if absent and absent != keys:
            raise GivenError(
                say("{keys} contradict each other: is there a GPU or not?", keys=listed(keys))
            )
        if absent:
            return []
        names, capabilities = given.get("gpu", []), given.get("compute_capability", [])
        if names and capabilities and len(names) != len(capabilities):
            raise GivenError(
                say(
                    "gpu has {gpus} values and compute_capability has {capabilities}: give only "
                    "one of the keys, or the same number of values for both.",
                    gpus=len(names),
                    capabilities=len(capabilities),
                )
            )
        count = int(self._first("gpu_count") or 0)
        others = of_others(names, self._tables)
        if len(others) < len(names) and not capabilities and not count:
            self._others = others
            names = [name for name in names if name not in others]
        number = max(len(names), len(capabilities))
        if count and number not in (0, 1, count):
            raise GivenError(
                say(
                    "gpu_count is {count}, but {number} GPUs are named.", count=count, number=number
                )
            )
        if not count and not number:
            return self._board_gpu()
        if number == 1:
            names, capabilities = names * (count or 1), capabilities * (count or 1)
        return [
            self._gpu(at, names[at] if names else "", capabilities[at] if capabilities else None)
            for at in range(max(count, number))
        ]

    def _board_gpu(self) -> list[_Gpu] | None:
        board = self._first("board")
        if not board:
            return None
        capability = self._tables.get(GpuProducts).capability(board)
        if capability is None:
            self._drafts.miss(
                "system.jetson", say("the tables do not have the board {board}", board=board)
            )
            return None
        return [_Gpu(0, board, capability, say("the tables' row of this board"))]

    def _gpu(self, at: int, name: str, capability: str | None) -> _Gpu:
        if capability is not None:
            refuse_other_capability(name, capability, self._tables)
            return _Gpu(at, name, capability, self._source("compute_capability"))
        if not name:
            return _Gpu(at, "", None, "")
        for known in spellings(name):
            found = capability_of(known, self._tables)
            if found is not None:
                _gpu, mig, of_it = name.partition(" MIG ")
                return _Gpu(
                    at, f"{known}{mig}{of_it}", found, say("the tables' row of this product")
                )
        if other := of_other_vendor(name):
            other = say("{sentence}.", sentence=other)
            self._drafts.miss("nvml.gpus", other)
            return _Gpu(at, name, None, other)
        driver = NamedFor(
            driver=self._first("driver") or None,
            driver_cuda=self._first("driver_cuda") or None,
            to_install=False,
        )
        capability, several = one_of_several(name, self._tables, driver)
        if capability:
            return _Gpu(at, name, capability, several)
        if not several and (meant := meant_by(name, self._tables)):
            return _Gpu(at, *meant, say("the tables' row of this product"))
        reason: str = say(
            "the tables do not have the GPU {name}: give its compute_capability.", name=name
        )
        self._hints -= 1
        if several:
            reason = say("{sentence}.", sentence=several)
        elif self._hints >= 0 and (near := unlisted(name, self._tables)):
            reason = in_turn([reason, near])
        self._drafts.miss("nvml.gpus", reason)
        return _Gpu(at, name, None, reason)

    def _bus(self) -> None:
        draft = self._drafts.of(Pci)
        if self._gpus is not None:
            on_bus = [self._pci_gpu(gpu) for gpu in self._gpus]
            draft.fill("gpus", on_bus, self._gpu_source())
        if "nvswitch" in self._given:
            draft.fill("nvswitches", int(self._first("nvswitch") or 0), self._source("nvswitch"))

    def _gpu_source(self) -> str:
        keys = ("gpu", "compute_capability", "gpu_count", "board")
        return in_series([self._source(key) for key in keys if key in self._given])

    def _pci_gpu(self, gpu: _Gpu) -> PciGpu:
        draft = Draft()
        draft.fill("address", gpu.place, say("the order in which they were given"))
        if gpu.name:
            draft.fill("product", gpu.name, self._gpu_source())
        self._fill_capability(draft, gpu)
        return draft.build(PciGpu)

    def _fill_capability(self, draft: Draft, gpu: _Gpu) -> None:
        if gpu.capability is not None:
            draft.fill("compute_capability", gpu.capability, gpu.source)
        elif gpu.source:
            draft.unknown("compute_capability", gpu.source)

    def _without_driver(self) -> bool:
        given = self._given
        if self._is_absent("driver"):
            return True
        return self._is_absent("driver_package_installed") and not given.get("driver")

    def _runs(self) -> bool:
        """Whether a driver is named and not said to fail."""
        if not (self._given.get("driver") or self._given.get("driver_cuda")):
            return False
        return not self._is_absent("nvidia_module_loaded") and not self._without_driver()

    def _kept_out(self) -> bool:
        """Whether a program in a container reported that there is no GPU: then none is assumed."""
        code = self._drafts.of(CudaDriver).fields.get("init_code")
        return bool(self._given.get("container")) and code == _NO_DEVICE

    def _driver_files(self) -> None:
        given, draft = self._given, self._drafts.of(Driver)
        flavour, source = self._flavour()
        if flavour:
            draft.fill("module_flavour", flavour, source)
        if "nvidia_module_loaded" in given:
            loaded = not self._is_absent("nvidia_module_loaded")
            draft.fill("module_loaded", loaded, self._source("nvidia_module_loaded"))
        if "cuda_compat" in given:
            draft.fill("compat_packages", given["cuda_compat"], self._source("cuda_compat"))
        if self._without_driver():
            self._no_driver(draft)
        elif "driver_package_installed" in given:
            self._package(draft)
        elif given.get("driver") and not self._runs():
            self._installed(draft, "driver")

    def _no_driver(self, draft: Draft) -> None:
        key = "driver" if self._is_absent("driver") else "driver_package_installed"
        source = self._source(key)
        draft.fill("module_loaded", value=False, source=source)
        draft.fill("module_release", "", source)
        draft.fill("libcuda", [], source)
        draft.fill("packages", [], source)
        self._drafts.of(Nvml).fill("library_found", value=False, source=source)
        self._drafts.of(CudaDriver).fill("library", "", source)
        if self._first("os") == "wsl2":
            node = DeviceNode(path="/dev/dxg", sources={"*": say("assumed: every WSL 2 has it")})
            self._drafts.of(DeviceNodes).fill("nodes", [node], say("assumed: every WSL 2 has it"))

    def _package(self, draft: Draft) -> None:
        source = self._source("driver_package_installed")
        if self._is_absent("driver_package_installed"):
            draft.fill("packages", [], source)
            return
        draft.fill("packages", ["nvidia-driver"], source)
        self._installed(draft, "driver_package_installed")

    def _installed(self, draft: Draft, key: str) -> None:
        """Describe the libraries of an installed driver, whether it runs or not."""
        library = Draft()
        library.fill("kind", "driver", self._source(key))
        if self._first("driver"):
            library.fill("release", self._first("driver"), self._source("driver"))
        draft.fill("libcuda", [library.build(DriverLibrary)], self._source(key))
        self._drafts.of(Nvml).fill("library_found", value=True, source=self._source(key))

    def _cuda_error(self, unread: dict[str, str]) -> None:
        if "cuda_error" not in self._given:
            return
        code = self._error_code(self._first("cuda_error"))
        row = self._tables.get(CudaErrors).error(code)
        if row is not None and APPLICATION_BUG.slug in row.slugs[:1]:
            self._drafts.of(CudaDriver).fill("program_code", code, self._source("cuda_error"))
            return
        if code not in _OF_CUINIT:
            unread["cuda_error"] = say(
                "error {code} comes from a program that runs, not from cuInit", code=code
            )
            return
        self._drafts.of(CudaDriver).fill("init_code", code, self._source("cuda_error"))

    def _error_code(self, word: str) -> int:
        if (number := whole_number(word or "0")) is not None:
            return number
        row = self._tables.get(CudaErrors).named(word)
        if row is None:
            raise GivenError(
                say(
                    "cuda_error takes a number or a name, and {word} is not a known name.",
                    word=repr(word),
                )
            )
        return row.code

    def _nvml(self, unread: dict[str, str]) -> None:
        given, draft = self._given, self._drafts.of(Nvml)
        code = self._nvml_code()
        if code == _LIBRARY_NOT_FOUND:
            draft.fill("library_found", value=False, source=self._source("nvml_error"))
        elif code not in (None, 0, *_OF_ONE_GPU):
            draft.fill("init_code", code, self._source("nvml_error"))
        elif code is not None or (self._runs() and not self._kept_out()):
            why = (
                self._source("nvml_error")
                if code is not None
                else say("assumed: no error was given")
            )
            draft.fill("init_code", 0, why)
        elif self._gpus == [] and self._first("os") in ("windows", "wsl2"):
            draft.fill("init_code", 0, self._gpu_source())
        if given.get("driver") and not self._is_absent("nvidia_module_loaded"):
            draft.fill("driver_release", self._first("driver"), self._source("driver"))
        if given.get("driver_cuda"):
            draft.fill("cuda", self._first("driver_cuda"), self._source("driver_cuda"))
        elif cuda := self._cuda_of_branch() or self._cuda_of_jetpack():
            draft.fill("cuda", *cuda)
        self._nvml_gpus(draft, code)
        if code in _OF_ONE_GPU and self._gpus == []:
            unread["nvml_error"] = say("the error is about one GPU, and there is none")

    def _cuda_of_branch(self) -> tuple[str, str] | None:
        """Return the CUDA of a driver that is a branch ("580") or a board's, and its source."""
        branch = self._first("driver")
        of_board = bool(self._drafts.of(System).fields.get("jetson"))
        if ("." in branch and not of_board) or self._is_absent("nvidia_module_loaded"):
            return None
        if branch and of_board and (cuda := self._tables.get(Jetpacks).cuda_of_driver(branch)):
            return cuda, say("the tables' row of JetPack with driver {driver}", driver=branch)
        cuda = self._tables.get(DriverBranches).cuda_of(branch)
        if cuda is None:
            return None
        return cuda, say("the tables: driver branch {branch}", branch=branch)

    def _cuda_of_jetpack(self) -> tuple[str, str] | None:
        """Return the CUDA of a board's JetPack, and the source of it."""
        jetpack = self._first("jetpack")
        row = self._tables.get(Jetpacks).of_jetpack(jetpack) if jetpack else None
        if row is None or row.cuda is None:
            return None
        return row.cuda, say("the tables' row of JetPack {wanted}", wanted=jetpack)

    def _nvml_code(self) -> int | None:
        if "nvml_error" not in self._given:
            return None
        word = self._first("nvml_error")
        if (number := whole_number(word or "0")) is not None:
            return number
        rows = self._tables.get(NvmlErrors).rows
        found = next((row.code for row in rows if row.error == word.upper()), None)
        if found is None:
            raise GivenError(
                say(
                    "nvml_error takes a number or a name, and {word} is not a known name.",
                    word=repr(word),
                )
            )
        return found

    def _nvml_gpus(self, draft: Draft, code: int | None) -> None:
        """List the GPUs that the driver serves; a given state is the state of some GPU."""
        states = ("compute_mode", "other_processes", "row_remap_pending", "row_remap_failure")
        spoken_of = any(self._given.get(key) for key in states) or code in _OF_ONE_GPU
        gpus = self._gpus
        if gpus is None and spoken_of:
            gpus = [_Gpu(0, "", None, "")]
        if gpus is None or draft.fields.get("init_code") not in (None, 0):
            return
        if draft.fields.get("init_code") is None and not spoken_of:
            return
        served = [gpu for gpu in gpus if self._drives(gpu)]
        draft.fill("gpus", [self._nvml_gpu(gpu, code) for gpu in served], self._gpu_source())

    def _drives(self, gpu: _Gpu) -> bool:
        """Whether the branch and the modules support this GPU, as far as the tables know."""
        architectures = self._tables.get(GpuArchitectures)
        if gpu.capability is None or self._drafts.of(System).fields.get("jetson"):
            return True
        support = DriverSupport(architectures, self._tables.get(DriverBranches))
        release, cuda = self._first("driver") or None, self._first("driver_cuda") or None
        drives = support.drives(gpu.capability, release=release, cuda=cuda)
        if drives in ("dropped", "too-old"):
            return False
        if drives == "not-known":
            self._doubt(gpu, support)
        modules = architectures.modules(gpu.capability, gpu.name or None)
        flavour = self._flavour()[0]
        if modules is None or not flavour:
            return True
        allowed = modules.open if flavour == "open" else modules.proprietary
        return allowed != "unsupported"

    def _flavour(self) -> tuple[str, str]:
        """Return the kind of the kernel modules, "" if unknown, and its source.

        If some GPUs need the open ones and others the proprietary ones, one kind is assumed:
        whichever is loaded, it does not drive all of them.
        """
        if given := self._first("kernel_module"):
            return given, self._source("kernel_module")
        named = [(gpu.capability, gpu.name or None) for gpu in self._gpus or ()]
        apart = self._tables.get(GpuArchitectures).share_no_modules(named)
        if apart and self._first("os") not in ("windows", "wsl2") and self._first("driver"):
            return "open", say("assumed: no kernel modules drive all of these GPUs")
        return "", ""

    def _doubt(self, gpu: _Gpu, support: DriverSupport) -> None:
        """Leave open whether a driver older than the GPU's first compiler supports the GPU."""
        toolkit = ".".join(map(str, support.first_toolkit(gpu.capability or "") or ()))
        name = gpu.name or gpu.capability
        if driver := self._first("driver"):
            reason = say(
                "the tables do not say whether driver {driver} supports {gpu}: it is older than "
                "CUDA {cuda}, the first whose compiler knows this GPU",
                driver=driver,
                gpu=name,
                cuda=toolkit,
            )
        else:
            reason = say(
                "the tables do not say whether the driver of CUDA {driver_cuda} supports {gpu}: it "
                "is older than CUDA {cuda}, the first whose compiler knows this GPU",
                driver_cuda=self._first("driver_cuda"),
                gpu=name,
                cuda=toolkit,
            )
        if reason not in [missing.reason for missing in self._drafts.missing]:
            self._drafts.miss("nvml.gpus", reason)

    def _nvml_gpu(self, gpu: _Gpu, code: int | None) -> NvmlGpu:
        draft = Draft()
        if gpu.name or gpu.capability:
            draft.fill("index", gpu.at, say("the order in which they were given"))
        draft.fill("pci_address", gpu.place, say("the order in which they were given"))
        if gpu.name:
            draft.fill("device_name", gpu.name, self._gpu_source())
        self._fill_capability(draft, gpu)
        if self._given.get("compute_mode"):
            draft.fill("compute_mode", self._first("compute_mode"), self._source("compute_mode"))
        if "other_processes" in self._given:
            source = self._source("other_processes")
            number = int(self._first("other_processes") or 0)
            holders = [GpuProcess(kind="compute", sources={"*": source}) for _ in range(number)]
            draft.fill("processes", holders, source)
        if gpu.at == 0:
            self._first_gpu(draft, code)
        return draft.build(NvmlGpu)

    def _first_gpu(self, draft: Draft, code: int | None) -> None:
        """Assign a state that was given for some GPU to the first one."""
        for key, field in (
            ("row_remap_pending", "rows_pending"), ("row_remap_failure", "rows_failed")
        ):  # fmt: skip
            if key in self._given:
                draft.fill(field, not self._is_absent(key), self._source(key))
        if code in _OF_ONE_GPU:
            draft.fill("handle_code", code, self._source("nvml_error"))
            draft.fill("lost", code == _LOST, self._source("nvml_error"))

    def _log(self) -> None:
        if "xid" not in self._given:
            return
        source, draft = self._source("xid"), self._drafts.of(KernelLog)
        events = []
        for number in self._given["xid"]:
            event = Draft()
            event.fill("xid", int(number), source)
            event.fill("pci_address", "gpu 0", say("assumed: the first GPU"))
            event.fill("message", f"Xid {number}", source)
            event.fill("seconds_ago", 0.0, say("assumed: it has just happened"))
            events.append(event.build(XidEvent))
        draft.fill("xids", events, source)
        fallen = ["of Xid 79"] if str(_OFF_THE_BUS) in self._given["xid"] else []
        draft.fill("fallen_off_bus", fallen, source)
