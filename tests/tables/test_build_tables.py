"""What builds and is built: compilers, targets, pins, extensions, Triton, NumPy 2, indexes."""

from typing import Literal

from each import each
from tables.some import some

from gpucheck.tables import OperatingSystem, Tables
from gpucheck.tables.companions import Extensions, TorchCompanions
from gpucheck.tables.compilers import HostCompilers, ToolkitTargets
from gpucheck.tables.jetson import JetsonWheels
from gpucheck.tables.packages import Numpy2, Triton
from gpucheck.tables.torch import TorchPins, WheelIndexes


@each(
    ("cuda", "compiler", "version", "expected"),
    [
        ("13.0", "gcc", "15.1.0", True),
        ("13.0.88", "gcc", "16.1", False),
        ("12.8", "gcc", "15", False),
        ("12.8", "gcc", "14.2.0", True),
        ("12.3", "gcc", "13.2.0", False),
        ("12.4", "clang", "17.0.6", True),
        ("12.4", "clang", "18", False),
        ("9.0", "clang", "3.9.1", True),
        ("9.0", "clang", "4.0", False),
        ("11.5", "gcc", "11.2", None),
        ("14.0", "gcc", "15", None),
        ("12.4", "gcc", "junk", None),
    ],
)
def test_compilers_that_nvcc_takes(
    tables: Tables,
    cuda: str,
    compiler: Literal["gcc", "clang"],
    version: str,
    expected: object,
) -> None:
    assert tables.get(HostCompilers).nvcc_takes(cuda, compiler, version) is expected


@each(
    ("cuda", "msc_ver", "expected"),
    [
        ("12.3", 1939, True),
        ("12.3", 1940, False),
        ("12.4", 1940, True),
        ("13.0", 1916, False),
        ("13.2", 1950, True),
        ("13.1", 1950, False),
        ("11.6", 1930, None),
        ("junk", 1930, None),
    ],
)
def test_visual_c_that_nvcc_takes(
    tables: Tables, cuda: str, msc_ver: int, expected: object
) -> None:
    assert tables.get(HostCompilers).nvcc_takes_msvc(cuda, msc_ver) is expected


@each(
    ("torch", "cuda", "compiler", "version", "expected"),
    [
        ("2.11.0", "12.8", "gcc", "14.2.0", False),
        ("2.12.1", "12.8", "gcc", "14.2.0", True),
        ("2.15.0+cu132", "13.2", "gcc", "15.1", None),
        ("2.6.0", "12.4", "gcc", "13.1", None),
        ("1.13.1", "11.7", "gcc", "11.5.0", True),
        ("1.13.1", "11.7", "gcc", "12.1", False),
        ("1.13.1", "11.7", "gcc", "5.4", False),
        ("2.10.0", "11.0", "clang", "9", None),
        ("2.12.1", "12.4", "clang", "17.0.1", False),
        ("2.16.0", "12.4", "gcc", "13", None),
        ("junk", "12.4", "gcc", "13", None),
        ("2.12.1", "12.4", "gcc", "junk", None),
    ],
)
def test_compilers_that_torch_takes(
    tables: Tables,
    torch: str,
    cuda: str,
    compiler: Literal["gcc", "clang"],
    version: str,
    expected: object,
) -> None:
    assert tables.get(HostCompilers).torch_takes(torch, cuda, compiler, version) is expected


def test_rules_of_the_extension_builder(tables: Tables) -> None:
    table = tables.get(HostCompilers)
    assert some(table.rule("oldest-msvc", "2.13.0")).value == "19.0.24215"
    assert some(table.rule("oldest-msvc", "2.15.0")).value == "19.20"
    assert some(table.rule("nvcc-other-minor", "2.6.0")).effect == "a warning"
    assert table.rule("oldest-msvc", "2.16.0") is None
    assert table.rule("oldest-msvc", "junk") is None
    assert table.rule("no such rule", "2.6.0") is None


@each(
    ("cuda", "code", "expected"),
    [
        ("12.4", "sm_89", True),
        ("12.4", "compute_86", True),
        ("12.4", "sm_90a", True),
        ("12.4", "sm_120", False),
        ("12.8.93", "sm_120", True),
        ("12.8", "sm_100f", False),
        ("12.9", "sm_100f", True),
        ("13.0", "sm_70", False),
        ("11.7", "sm_89", False),
        ("14.0", "sm_89", None),
        ("12", "sm_89", None),
        ("12.4", "junk", None),
    ],
)
def test_targets_of_nvcc(tables: Tables, cuda: str, code: str, expected: object) -> None:
    assert tables.get(ToolkitTargets).accepts(cuda, code) is expected


def test_which_gpus_a_toolkit_compiles_for(tables: Tables) -> None:
    table = tables.get(ToolkitTargets)
    assert table.compiles_for("13.0", "6.1") is False
    assert table.compiles_for("12.9", "6.1") is True
    assert table.compiles_for("12.9", "junk") is None


def test_pins(tables: Tables) -> None:
    table = tables.get(TorchPins)
    pin = some(table.pin("2.15.0+cu132", "linux_x86_64", "cuda-toolkit"))
    assert pin.specifier == "==13.2.2"
    assert "cublas" in pin.extras
    assert some(table.pin("2.15.0", "linux_x86_64", "triton")).python == "<3.16"
    assert some(table.pin("2.6.0", "linux_x86_64", "nvidia_cudnn_cu12")).specifier == "==9.1.0.70"
    assert table.pin("2.6.0", "linux_x86_64", "numpy") is None
    assert table.pins("2.6.0", "windows") == ()
    assert table.pins("2.6.0", "macos") is None
    assert table.pins("9.9.9", "windows") is None
    assert table.pins("junk", "windows") is None


@each(
    ("torch", "package", "version", "expected"),
    [
        ("2.6.0", "nvidia-cudnn-cu12", "9.1.0.70", True),
        ("2.6.0", "nvidia-cudnn-cu12", "9.10.2.21", False),
        ("2.14.1", "triton", "3.8.1", True),
        ("2.14.1", "triton", "3.9.0", False),
        ("2.15.0", "cuda-bindings", "13.5.0", True),
        ("2.6.0", "nvidia-nvshmem-cu12", "3.4.5", None),
        ("2.6.0", "nvidia-cudnn-cu12", "junk", None),
    ],
)
def test_versions_that_a_pin_admits(
    tables: Tables, torch: str, package: str, version: str, expected: object
) -> None:
    assert tables.get(TorchPins).admits(torch, "linux_x86_64", package, version) is expected


def test_extensions(tables: Tables) -> None:
    table = tables.get(Extensions)
    assert some(table.release("flash_attn", "2.8.3")).built_with_cuda == ("12.9.1",)
    assert some(table.release("flash-attn", "2.8.3+cu12torch2.8")).version == "2.8.3"
    assert table.release("flash-attn", "9.9.9") is None
    assert table.fits_torch("xformers", "0.0.30", "2.7.0+cu126") is True
    assert table.fits_torch("xformers", "0.0.30", "2.7.1") is False
    assert table.fits_torch("xformers", "0.0.30", "junk") is None
    assert table.fits_torch("xformers", "0.0.30", "9" * 4999) is None
    assert table.fits_torch("flash-attn", "2.8.3", "2.7.1") is None
    assert table.for_torch("xformers", "2.7.1") == ("0.0.31", "0.0.31.post1")
    assert table.for_torch("vllm", "2.14.0")[-1] == "0.33.0"
    assert table.fits_torch("deepspeed", "0.19.5", "1.13.1") is False
    assert table.fits_torch("deepspeed", "0.18.9", "1.13.1") is None
    assert table.for_torch("xformers", "1.0.0") == ()
    assert table.newest_for_cuda("onnxruntime_gpu", "12") == "1.26.0"
    assert table.newest_for_cuda("onnxruntime-gpu", "12", "3.11.9") == "1.26.0"
    assert table.newest_for_cuda("onnxruntime-gpu", "12", "3.10.12") == "1.23.2"
    assert table.newest_for_cuda("onnxruntime-gpu", "13", "3.10.12") is None
    assert table.newest_for_cuda("onnxruntime-gpu", "12", "3.9.19") == "1.19.2"
    assert table.newest_for_cuda("onnxruntime-gpu", "11", "3.13.1") is None
    assert table.newest_for_cuda("onnxruntime-gpu", "14") is None
    assert table.newest_for_cuda("tensorrt", "11") is None
    assert table.serves_gpu("flash-attn", "2.8.3", "7.5") is False
    assert table.serves_gpu("flash-attn", "2.8.3", "8.9") is True
    assert table.serves_gpu("xformers", "0.0.30", "7.5") is None
    assert table.serves_gpu("flash-attn", "2.8.3", "junk") is None


def test_wheels_of_extensions(tables: Tables) -> None:
    table = tables.get(Extensions)
    address = some(table.wheels("torch_scatter", "2.3.1+cu121", "cu121"))
    assert address.endswith("/torch-2.3.0+cu121.html")
    assert some(table.wheels("torch-sparse", "2.12.1", "cu132")).endswith("torch-2.12.0+cu132.html")
    assert some(table.wheels("pyg_lib", "2.13.0", "cpu")).endswith("torch-2.13.0+cpu.html")
    assert table.wheels("torch-scatter", "2.13.0", "cpu") is None
    assert some(table.wheels("mmcv", "2.1.2", "cu118")).endswith("/cu118/torch2.1/index.html")
    assert table.wheels("mmcv", "2.5.1", "cu118") is None
    assert table.wheels("torch-scatter", "2.3.1", "cu124") is None
    assert table.wheels("torch-scatter", "2.15.0", "cu132") is None
    assert table.wheels("numpy", "2.3.1", "cu121") is None
    assert table.wheels("torch-scatter", "junk", "cu121") is None
    assert table.wheels("mmcv", "2.4.1", "cu121", "windows") is None
    assert table.wheels("mmcv", "2.4.1", "cu121", "linux_x86_64") == table.wheels(
        "mmcv", "2.4.1", "cu121"
    )
    assert some(table.wheels("mmcv", "2.3.1", "cu121", "windows")).endswith("torch2.3/index.html")
    assert table.wheels("mmcv", "1.12.1", "cu102", "windows") is None
    assert table.wheels("pyg-lib", "2.2.2", "cu121", "windows") is None
    assert table.wheels("torch-scatter", "2.2.2", "cu121", "windows") is not None


@each(
    ("package", "nvcc", "torch_cuda", "expected"),
    [
        ("apex", "12.8", "12.8", True),
        ("apex", "12.8.1", "12.8", True),
        ("apex", "12.8", "12.6", False),
        ("deepspeed", "12.8", "12.6", True),
        ("deepspeed", "11.8", "12.6", False),
        ("DeepSpeed", "13.0", "13.2", False),
        ("deepspeed", "13.2", "13.2", True),
        ("deepspeed", "junk", "13.2", None),
        ("numpy", "12.8", "12.8", None),
    ],
)
def test_nvcc_that_a_package_takes(
    tables: Tables, package: str, nvcc: str, torch_cuda: str, expected: object
) -> None:
    assert tables.get(Extensions).takes_nvcc(package, nvcc, torch_cuda) is expected


def test_what_skips_the_comparison_of_nvcc(tables: Tables) -> None:
    table = tables.get(Extensions)
    assert some(table.source_build("deepspeed")).override == "DS_SKIP_CUDA_CHECK=1"
    assert some(table.source_build("apex")).override is None
    assert table.source_build("flash-attn") is None


def test_triton(tables: Tables) -> None:
    table = tables.get(Triton)
    assert table.has_python("3.2.0", "3.13") is True
    assert table.has_python("3.2.0", "3.14") is False
    assert table.has_python("3.6.0", "3.9") is False
    assert table.has_python("9.9.9", "3.12") is None
    assert table.has_python("3.6.0", "3") is None
    assert some(table.release("3.3.1+git")).glibc == "2.27"
    assert table.release("junk") is None


@each(
    ("torch", "os", "expected"),
    [
        ("2.2.2", "linux", False),
        ("2.3.1", "linux", True),
        ("2.3.1+cu121", "windows", False),
        ("2.4.0", "windows", False),
        ("2.4.0", "linux", True),
        ("2.4.1", "windows", True),
        ("2.15.0", "linux", True),
        ("junk", "linux", None),
    ],
)
def test_numpy2(tables: Tables, torch: str, os: OperatingSystem, expected: object) -> None:
    assert tables.get(Numpy2).works(torch, os) is expected


def test_what_is_seen_with_numpy2(tables: Tables) -> None:
    table = tables.get(Numpy2)
    assert "Numpy is not available" in some(table.effect("2.2.2", "linux"))
    assert table.effect("2.15.0", "linux") is None


def test_addresses_of_builds(tables: Tables) -> None:
    table = tables.get(WheelIndexes)
    assert some(table.index("cu126")).address.startswith("https://")
    assert some(table.index("cpu", "windows_aarch64")).address.endswith("/cpu")
    assert table.index("cu999") is None
    assert table.index("cu134", "linux_x86_64") is None
    assert some(table.index("cu134", "windows_aarch64")).beside_pypi


def test_wheels_for_jetson(tables: Tables) -> None:
    table = tables.get(JetsonWheels)
    assert [row.torch for row in table.for_l4t("36.4.3")] == ["2.5.0", "2.8.0"]
    assert [row.torch for row in table.for_l4t("36.4")] == ["2.5.0", "2.6.0", "2.8.0"]
    assert [row.torch for row in table.for_l4t("32.7.1")] == ["1.9.0", "1.10.0", "1.11.0"]
    assert [row.torch for row in table.for_l4t("32.4.3")] == ["1.9.0", "1.10.0"]
    assert table.for_l4t("32.3.1") == (), "these wheels are for CUDA 10.2, which it lacks"
    assert [row.torch for row in table.for_l4t("35.1.0")] == ["1.11.0", "1.12.0", "1.13.0"]
    assert "1.12.0" not in [row.torch for row in table.for_l4t("35.3.1")]
    assert [row.torch for row in table.for_l4t("36.3.0")] == ["2.3.0", "2.4.0"]
    assert [row.torch for row in table.for_l4t("36.4.4")] == ["2.8.0"]
    assert [row.torch for row in table.for_l4t("36.4.2")] == ["2.5.0", "2.8.0"]
    assert table.for_l4t("R36") == ()


def test_what_pip_can_install_on_a_jetson_is_complete(tables: Tables) -> None:
    wheels = tables.get(JetsonWheels)
    for l4t in {name for row in wheels.rows for name in row.l4t}:
        assert any(row.wheel or row.index for row in wheels.for_l4t(l4t)), l4t
    for row in wheels.rows:
        if row.wheel or row.index:
            assert all((row.cuda, row.python, row.compute_capabilities)), row
        if row.wheel:
            digits = (row.python or "").replace(".", "")
            name = row.wheel_name or row.wheel.rpartition("/")[2]
            assert f"-cp{digits}-cp{digits}" in name, "the name of the wheel says its Python"
            assert name.startswith(f"torch-{row.torch}")
            assert name.endswith(".whl"), "pip takes no file with another name"


@each(
    ("version", "torch", "expected"),
    [
        ("0.17.2", "2.2.2", True),
        ("0.17.2", "2.3.0", False),
        ("0.18.0", "2.3.1", True),
        ("0.18.0", "2.4.0", None),
        ("0.18.0", "2.2.2", False),
        ("0.19.0", "2.4.0", None),
    ],
)
def test_torchtext(tables: Tables, version: str, torch: str, expected: object) -> None:
    table = tables.get(TorchCompanions)
    assert table.agrees("torchtext", version, torch) is expected


def test_the_torchtext_of_a_torch(tables: Tables) -> None:
    table = tables.get(TorchCompanions)
    assert table.companion_for("2.2.2", "torchtext") == "0.17.2"
    assert table.companion_for("2.6.0", "torchtext") is None
    assert table.pin("torchtext", "0.18.0") == ">=2.3.0"


@each(
    ("version", "platform", "glibc"),
    [
        ("0.8.5.post1", "linux_x86_64", "2.28"),  # xformers, which it pins
        ("0.9.2", "linux_x86_64", "2.29"),  # _moe_C.abi3.so; the tag says 2.5
        ("0.11.2", "linux_aarch64", "2.29"),
        ("0.33.0", "linux_x86_64", "2.28"),
        ("0.33.0", "linux_aarch64", "2.34"),  # tilelang, which it pins
    ],
)
def test_the_c_library_of_a_wheel_is_not_that_of_its_tag_alone(
    tables: Tables, version: str, platform: str, glibc: str
) -> None:
    assert some(tables.get(Extensions).wheel("vllm", version, platform)).glibc == glibc


@each(
    ("package", "version", "platform", "python"),
    [
        ("bitsandbytes", "0.50.0", "windows_aarch64", None),  # its wheel is for the CPU alone
        ("bitsandbytes", "0.50.1", "windows_aarch64", ">=3.10"),
        ("vllm", "0.10.2", "linux_aarch64", "<3.13,>=3.9"),  # xgrammar, which it pins
        ("vllm", "0.17.1", "linux_aarch64", "<3.13,>=3.10"),
        ("vllm", "0.17.1", "linux_x86_64", "<3.14,>=3.10"),
    ],
)
def test_the_wheels_of_a_release_differ_by_platform(
    tables: Tables, package: str, version: str, platform: str, python: str | None
) -> None:
    row = tables.get(Extensions).wheel(package, version, platform)
    assert (row and row.python) == python


def test_a_rule_may_begin_with_a_point_release(tables: Tables) -> None:
    table = tables.get(HostCompilers)
    asked = ("2.2.1", "2.2.2", "2.11.0", "2.12.0")
    known = [torch for torch in asked if table.rule("oldest-gcc-for-headers", torch)]
    assert known == ["2.2.2", "2.11.0"]
