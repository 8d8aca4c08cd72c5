"""Libraries: toolkit components, file names, cuDNN's parts and rules, NCCL, result codes."""

from each import each
from tables.some import some

from gpucheck.tables import Tables
from gpucheck.tables.cuda import CudaComponents, CudaSonames, RuntimeOpens
from gpucheck.tables.cudnn import CudnnRules, CudnnSublibraries
from gpucheck.tables.error_codes import LibraryErrors
from gpucheck.tables.nccl import Nccl
from gpucheck.tables.versions import numbers


def test_versions_of_components(tables: Tables) -> None:
    table = tables.get(CudaComponents)
    assert table.version("12.4.1", "cublas") == "12.4.5.8"
    assert table.version("12.4.1", "cudart") == "12.4.127"
    assert table.version("12.4", "cublas") is None
    assert table.version("11.8.0", "nvjitlink") is None
    assert table.version("13.4.1", "cublas") == "13.7.0.27"
    assert table.version("13.4.2", "cublas") == "13.8.0.4"
    assert table.version("99.0.0", "cublas") is None
    assert table.version("junk", "cublas") is None


@each(
    ("package", "version", "expected"),
    [
        ("nvidia-cublas-cu12", "12.4.5.8", ("12.4.1",)),
        ("nvidia-cublas", "13.4.1.3", ("13.2.2",)),
        ("nvidia-cuda-nvrtc-cu12", "12.8.93", ("12.8.1", "12.8.2")),
        ("nvidia-cublas-cu12", "12.4.5.9", ()),
        ("nvidia-cudnn-cu12", "9.1.0.70", None),
        ("nvidia-cublas-cu12", "junk", None),
        ("numpy", "2.0.0", None),
    ],
)
def test_toolkits_of_a_package(
    tables: Tables, package: str, version: str, expected: tuple[str, ...] | None
) -> None:
    assert tables.get(CudaComponents).toolkits_of(package, version) == expected


def test_sonames(tables: Tables) -> None:
    table = tables.get(CudaSonames)
    assert table.soname("cudart", "11.8") == "libcudart.so.11.0"
    assert table.soname("cufft", "13") == "libcufft.so.12"
    assert table.soname("cufft", "11.8") == "libcufft.so.10"
    assert table.soname("nvjitlink", "11") is None
    assert table.soname("cupti", "11") is None  # it differs from one minor version to the next
    assert table.majors_of("libnccl.so.2") == ("11", "12", "13")
    assert table.majors_of("libcusolver.so.11") == ("11", "12")
    assert table.majors_of("libcusparse.so.12") == ("12", "13")
    assert table.majors_of("libfoo.so.1") == ()
    assert table.library_of("libcublasLt.so.12") == "cublasLt"
    assert table.library_of("libfoo.so.1") is None


def test_parts_of_cudnn(tables: Tables) -> None:
    table = tables.get(CudnnSublibraries)
    assert table.main("9.1.0.70") == "libcudnn.so.9"
    assert table.main("7.6.5") == "libcudnn.so.7"
    assert table.main("10.0") is None
    assert table.expected("7.6.5") == ("libcudnn.so.7",)
    assert len(some(table.expected("8.9.2.26"))) == 7
    assert "libcudnn_ext.so.9" in some(table.expected("9.24.0.43"))
    assert "libcudnn_ext.so.9" in some(table.expected("9.26.0.51"))
    assert "libcudnn_ext.so.9" not in some(table.expected("9.10.2.21"))
    assert "libcudnn_ext.so.9" not in some(table.expected("9"))
    assert table.expected("10.0.0") is None
    assert table.expected("junk") is None
    assert table.major_of("libcudnn_cnn_infer.so.8") == "8"
    assert table.major_of("libcudnn.so.10") is None


@each(
    ("torch", "compiled", "runtime", "expected"),
    [
        ("2.6.0+cu124", "9.1.0", "9.10.2", True),
        ("2.6.0", "9.1.0", "9.1.1", True),
        ("2.6.0", "9.10.2", "9.1.0", False),
        ("2.6.0", "9.1.0", "8.9.2", False),
        ("2.16.0", "9.1.0", "9.10.2", None),
        ("2.6.0", "9", "9.1.0", None),
        ("2.6.0", "9.1.0", "junk", None),
        ("2.6.0a0+git", "9.1.0", "9.10.2", None),
    ],
)
def test_which_cudnn_torch_accepts(
    tables: Tables, torch: str, compiled: str, runtime: str, expected: object
) -> None:
    assert tables.get(CudnnRules).runtime_accepted(torch, compiled, runtime) is expected


@each(
    ("torch", "runtime", "capability", "expected"),
    [
        ("2.10.0", "9.11.0.98", "7.0", True),
        ("2.10.0", "9.11.0.98", "7.5", False),
        ("2.10.0", "9.10.2.21", "6.1", False),
        ("2.9.1", "9.11.0.98", "7.0", None),
        ("2.10.0", "junk", "7.0", None),
        ("2.10.0", "9.11.0", "junk", None),
    ],
)
def test_when_torch_refuses_cudnn_for_an_old_gpu(
    tables: Tables, torch: str, runtime: str, capability: str, expected: object
) -> None:
    assert tables.get(CudnnRules).refuses_gpus(torch, runtime, capability) is expected


def test_the_variable_that_switches_the_check_off(tables: Tables) -> None:
    table = tables.get(CudnnRules)
    assert table.override("2.6.0") == "PYTORCH_SKIP_CUDNN_COMPATIBILITY_CHECK"
    assert table.override("1.13.1") is None


def test_nccl_of_torch(tables: Tables) -> None:
    table = tables.get(Nccl)
    assert table.of_torch("2.7.1+cu126", "cu126") == "2.26.2"
    assert table.of_torch("2.12.1", "cu126") == "2.29.3"
    assert table.of_torch("2.12.1", "cu130") == "2.29.7"
    assert table.of_torch("2.5.1", "cu118") is None
    assert table.of_torch("junk", "cu126") is None
    assert some(table.code("2.30.7", "13")).ptx == ("compute_120",)
    assert table.code("2.30.7", "12") is None


@each(
    ("nccl", "fixed_in"),
    [
        ("2.29.2", {"2.29.3"}),
        ("2.28.9", {"2.29.3"}),
        ("2.29.3", set()),
        ("2.28.3", {"2.28.9", "2.28.7"}),
        ("2.26.5", {"2.28.9", "2.28.7"}),
        ("2.26.3", {"2.28.9", "2.28.7", "2.27.3"}),
        ("2.30.7", set()),
    ],
)
def test_faults_of_nccl(tables: Tables, nccl: str, fixed_in: set[str]) -> None:
    assert {row.fixed_in for row in some(tables.get(Nccl).issues(nccl))} == fixed_in


def test_corrupted_data_of_symmetric_kernels(tables: Tables) -> None:
    table = tables.get(Nccl)
    for nccl, corrupts in (
        ("2.26.6", False),
        ("2.27.5", False),
        ("2.28.3", True),
        ("2.28.7", False),
    ):
        effects = {row.effect for row in some(table.issues(nccl))}
        assert ("data corruption" in effects) is corrupts, nccl


def test_what_is_opened_at_run_time(tables: Tables) -> None:
    table = tables.get(RuntimeOpens)

    def opened(soname: str, release: str = "", cuda: str = "") -> dict[str, str]:
        return {row.opened: row.need for row in table.opened_by(soname, release, cuda)}

    assert opened("libcudart.so.12") == {"libcuda.so.1": "required"}
    assert opened("libnvrtc.so.12") == {"libnvrtc-builtins.so.{version}": "required"}
    assert opened("libcudnn.so.9")["libcudnn_adv.so.9"] == "feature"
    assert opened("libcudnn.so.7") == opened("libfoo.so.1") == {}
    assert "libcudnn_ops_infer.so.8" in opened("libcudnn.so.8")
    assert opened("libcusparse.so.12", cuda="12") == {"libcuda.so.1": "required"}
    assert "libnvJitLink.so.13" in opened("libcusparse.so.12", cuda="13")


def test_what_is_opened_goes_by_the_release_of_the_opener(tables: Tables) -> None:
    table = tables.get(RuntimeOpens)
    tensor_ir, heuristic = "libcudnn_engines_tensor_ir.so.9", "libcudnn_heuristic.so.9"
    for release, ir, plans in (
        ("", None, None),
        ("9.10.2", None, "required"),
        ("9.12.0", None, "required"),
        ("9.13.0", None, "feature"),
        ("9.20.0", "optional", "feature"),
        ("9.24.0", "required", "feature"),
        ("9.26.0", "required", "feature"),
        ("9.99.0", "required", "feature"),
    ):
        found = {
            row.opened: row.need for row in table.opened_by("libcudnn_graph.so.9", release, "")
        }
        assert (found.get(tensor_ir), found.get(heuristic)) == (ir, plans), release
        assert found.get("libcudnn_engines_precompiled.so.9") == plans, release


@each(
    ("release", "expected"),
    [
        ("", set()),
        ("1.13.1", set()),
        ("2.0.0", {"libnvfuser_codegen.so"}),
        ("2.1.2", {"libnvfuser_codegen.so"}),
        ("2.2.0", set()),
        ("2.15.0", set()),
    ],
)
def test_nvfuser_is_opened_by_two_releases_of_torch(
    tables: Tables, release: str, expected: set[str]
) -> None:
    rows = tables.get(RuntimeOpens).opened_by("libtorch_cpu.so", release, "12")
    assert {row.opened for row in rows} == expected
    assert all(row.need == "optional" for row in rows)


def test_the_names_that_are_tried(tables: Tables) -> None:
    table = tables.get(RuntimeOpens)
    ops = table.opened_by("libcudnn.so.9", "", "")[1]
    assert ops.names("9.10.2") == (
        "libcudnn_ops.so.9.10.2", "libcudnn_ops.so.9.10", "libcudnn_ops.so.9",
    )  # fmt: skip
    assert ops.names("9.10.2.21") == ops.names("9.10.2")
    assert ops.names("") == ops.names("9") == ops.names("9.10") == ("libcudnn_ops.so.9",)
    (builtins,) = table.opened_by("libnvrtc.so.12", "", "")
    assert builtins.names("12.8.93") == ("libnvrtc-builtins.so.12.8",)
    assert builtins.names("11.2") == ()  # a SONAME's number: that of 11.8 is libnvrtc.so.11.2
    assert builtins.names("") == builtins.names("junk") == ()


def test_rows_about_one_name_stand_in_the_order_of_releases(tables: Tables) -> None:
    last: dict[tuple[str, str, str | None], tuple[int, ...]] = {}
    for row in tables.get(RuntimeOpens).rows:
        pair = row.opener, row.opened, row.cuda
        since = numbers(row.since or "0")
        assert pair not in last or last[pair] < since, row
        last[pair] = since


def test_parts_of_cudnn_are_opened_by_another_part(tables: Tables) -> None:
    parts, rows = tables.get(CudnnSublibraries), tables.get(RuntimeOpens).rows
    for row in rows:
        if row.kind == "cudnn":
            assert parts.major_of(row.opened) == parts.major_of(row.opener), row
    for part in parts.rows:
        if part.role == "part":
            assert any(row.opened == part.soname for row in rows), part.soname


def test_opened_libraries_have_the_names_of_the_table_of_sonames(tables: Tables) -> None:
    sonames = tables.get(CudaSonames)
    for row in tables.get(RuntimeOpens).rows:
        known = sonames.library_of(row.opened) is not None
        if row.kind == "cuda" and row.opened[-1].isdigit() and "rdma" not in row.opened:
            assert known, row.opened
        assert not (row.kind == "driver" and known)


def test_faults_of_an_nccl_that_the_table_does_not_reach(tables: Tables) -> None:
    table = tables.get(Nccl)
    assert table.newest() == "2.32.3"
    assert table.issues("2.33.0") is None
    assert table.issues("junk") is None
    assert {"hang", "data corruption"} <= {row.effect for row in some(table.issues("2.17.1"))}


def test_result_codes(tables: Tables) -> None:
    table = tables.get(LibraryErrors)
    assert some(table.error("cudnn", 1002)).slugs[0] == "cudnn-version-mismatch"
    assert some(table.error("nccl", 5)).slugs[0] == "nccl-duplicate-gpu"
    assert some(table.named("CUBLAS_STATUS_ALLOC_FAILED")).slugs[0] == "out-of-memory"
    assert some(table.named("CUDNN_STATUS_ARCH_MISMATCH")).code == 3007
    assert some(table.named("CUDNN_STATUS_VERSION_MISMATCH")).code == 1002
    assert some(table.error("cudnn", 8)).error == "CUDNN_STATUS_EXECUTION_FAILED"  # of cuDNN 8
    assert some(table.named("CUDNN_STATUS_EXECUTION_FAILED")).code == 5000
    assert table.error("cublas", 2) is None
    assert table.named("CUDNN_STATUS_NOTHING") is None
