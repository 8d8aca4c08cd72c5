import pytest
from each import each
from msgspec.structs import replace
from rule_facts import (
    A100,
    CUDA_TORCH,
    EMPTY_BUS,
    HOST,
    LINUX,
    NO_TORCH,
    NO_VARIABLES,
    commands,
    hit,
    on_bus,
    quiet,
)
from rules_support import TABLES, ask, snapshot

from gpucheck.derived.wheels import WheelsOfPypi
from gpucheck.engine import supply
from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.libraries import Extension, Extensions
from gpucheck.facts.torch import Distribution, Interpreter, Packages, TorchBuild
from gpucheck.findings.form import Fine, Judgement, NotApplicable

TORCH = replace(CUDA_TORCH, version="2.9.1+cu128", cuda="12.8", cxx11_abi=True)
CPU = TorchBuild(
    installed=True, version="2.9.1+cpu", built_for="cpu", cuda="", arch_list=[], cxx11_abi=True
)
PYTHON = Interpreter(status="ok", executable="/env/bin/python", version="3.11.7", has_pip=True)
DECREF = "c10::TensorImpl::decref_pyobject"


def file(  # noqa: PLR0913  # one argument for each field that tests vary
    package: str = "flash-attn",
    *,
    version: str = "2.8.3",
    symbols: tuple[str, ...] | None = (),
    libraries: tuple[str, ...] = (),
    cuda: str = "12",
    name: str = "",
    python: str = "",
    needs_torch: bool = True,
    cxx11: bool | None = None,
    requires: bool = False,
    optional: bool = False,
    loads: bool = False,
) -> Extension:
    """Return a compiled file of a package."""
    where = name or f"{package}/_C.so"
    return Extension(
        package=package,
        version=version,
        file=where,
        variant_of="".join("#" if char.isdigit() else char for char in where),
        python=python,
        needs_torch=needs_torch,
        requires_torch=requires,
        optional=optional,
        loads_missing=loads,
        cuda=cuda,
        missing_libraries=list(libraries),
        missing_symbols=None if symbols is None else list(symbols),
        missing_symbol_count=None if symbols is None else len(symbols),
        cxx11_abi=cxx11,
        problems={"missing_symbols": "no libc10.so that can be read"} if symbols is None else {},
    )


def judge(
    *files: Extension, torch: TorchBuild = TORCH, more: tuple[Section, ...] = ()
) -> Judgement:
    known = {section.name: section for section in (PYTHON, on_bus(A100), *more)}
    return ask(
        "extension-abi-mismatch",
        LINUX,
        HOST,
        NO_VARIABLES,
        torch,
        Extensions(extensions=list(files)),
        *known.values(),
    )


def packages(*found: Distribution) -> Packages:
    return Packages(distributions=list(found), conda_packages=[])


def test_missing_symbols_are_named() -> None:
    found = hit(judge(file(symbols=(DECREF, "at::_ops::add::call"))))
    assert found.headline.startswith("flash-attn 2.8.3 was compiled for another PyTorch")
    assert f"torch 2.9.1+cu128 lacks {DECREF} and one more symbol" in found.headline
    assert found.evidence[0] == "extensions.extensions.0.missing_symbols"
    assert "--no-build-isolation flash-attn" in commands(found)


def test_a_gpu_older_than_every_build_of_the_package_comes_first() -> None:
    found = hit(judge(file(symbols=(DECREF,)), more=(on_bus(("Tesla T4", "7.5")),)))
    assert found.headline.startswith("flash-attn 2.8.3 does not support compute capability 7.5;")
    assert "besides, it was compiled for another PyTorch" in found.headline
    assert "pip uninstall -y flash-attn" in commands(found)
    assert "--no-build-isolation" not in commands(found)


def test_a_private_extension_is_compiled_again() -> None:
    found = hit(judge(file("my_ext", version="", symbols=(DECREF,))))
    assert found.fixes[0].text.startswith(
        "In the folder with the setup.py of my_ext, delete the folder build, and recompile it "
    )
    assert found.fixes[0].commands == (
        "/env/bin/python -m pip install setuptools wheel",
        "/env/bin/python -m pip install --no-build-isolation --force-reinstall --no-deps .",
    )


def test_a_package_of_ones_own_is_not_fetched_from_pypi() -> None:
    (fix,) = hit(judge(file("acme-ops", version="1.0", symbols=(DECREF,)))).fixes
    assert fix.commands == ()
    assert "--no-binary" not in fix.text
    assert "compile it from its source against this torch" in fix.text


def test_a_release_that_is_bound_to_this_torch_is_offered() -> None:
    found = hit(judge(file("xformers", version="0.0.30", symbols=(DECREF,)),
                      torch=replace(TORCH, version="2.7.0+cu128")))  # fmt: skip
    assert "xformers==0.0.30" in commands(found)


def test_a_release_that_pypi_has_for_another_cuda_is_in_the_index_of_pytorch() -> None:
    """0.0.35 requires torch 2.10 or newer: the release fits, only its CUDA does not."""
    other_cuda = file("xformers", version="0.0.35", libraries=("libcudart.so.12",), cuda="12")
    torch = replace(TORCH, version="2.15.0+cu132", cuda="13.2")
    (fix,) = hit(judge(other_cuda, torch=torch)).fixes
    assert "the build of xformers 0.0.35 for CUDA 13" in fix.text
    assert fix.commands[-1].endswith(
        "install --force-reinstall --no-deps xformers==0.0.35 --index-url "
        "https://download.pytorch.org/whl/cu130"
    )
    torch = replace(TORCH, version="2.9.1+cu118", cuda="11.8")
    assert "whl/cu" not in commands(hit(judge(other_cuda, torch=torch)))  # nobody built it


def test_a_wheel_of_pypi_is_for_another_cuda_only_beside_a_torch_for_that() -> None:
    packages = Packages(distributions=[Distribution(project="xformers", version="0.0.35")])

    def named(cuda: str) -> WheelsOfPypi:
        facts = snapshot(LINUX, replace(TORCH, cuda=cuda), packages, Extensions())
        made: WheelsOfPypi = supply(WheelsOfPypi, facts, TABLES)
        return made

    assert named("12.8").for_other_cuda() is None
    with pytest.raises(UnknownFactError, match=r"xformers 0\.0\.35 of PyPI is for CUDA 12"):
        named("13.0").for_other_cuda()


def test_wheels_made_for_this_torch_are_offered() -> None:
    torch = replace(TORCH, version="2.6.0+cu124", cuda="12.4")
    found = hit(judge(file("torch-scatter", version="2.1.2", symbols=(DECREF,)), torch=torch))
    assert "--find-links https://data.pyg.org/whl/torch-2.6.0+cu124.html" in commands(found)


def test_of_a_package_without_wheels_on_pypi_the_source_is_compiled() -> None:
    """Its project made no wheels for this torch either."""
    found = hit(judge(file("mmcv", version="2.2.0", symbols=(DECREF,))))
    assert "install --no-deps --no-cache-dir --no-build-isolation mmcv" in commands(found)


def test_a_package_that_demands_its_own_torch_brings_it() -> None:
    vllm = Distribution(project="vllm", version="0.33.0", torch_requirement="==2.14.0")
    broken = file("vllm", version="0.33.0", symbols=(DECREF,))
    torch = replace(TORCH, version="2.3.1+cu121", cuda="12.1")
    found = hit(judge(broken, torch=torch, more=(packages(vllm),)))
    assert "install vllm==0.33.0 torch==2.14.0" in commands(found)


def test_the_strings_of_another_abi_are_the_cause() -> None:
    found = hit(judge(file(symbols=("c10::detail::torchCheckFail",), cxx11=False)))
    assert "compiled with the string type from before C++11" in found.headline


def test_a_cuda_extension_beside_a_cpu_build() -> None:
    extension = file(symbols=("c10::cuda::device_count",), libraries=("libc10_cuda.so",))
    found = hit(judge(extension, torch=CPU))
    assert "is a CPU build" in found.headline
    assert found.severity is Severity.ERROR
    assert hit(judge(extension, torch=CPU, more=(EMPTY_BUS,))).severity is Severity.WARNING


def test_the_library_of_an_old_torch() -> None:
    found = hit(judge(file(libraries=("libtorch_cuda_cu.so",))))
    assert "needs libtorch_cuda_cu.so, which torch 2.9.1+cu128 does not have" in found.headline


def test_another_cuda_whose_runtime_is_not_there() -> None:
    extension = file(libraries=("libcudart.so.11.0",), cuda="11")
    found = hit(judge(extension))
    assert "compiled for CUDA 11, and the loader does not find libcudart.so.11.0" in (
        found.headline
    )
    assert found.confidence is Confidence.CERTAIN
    stray = packages(Distribution(project="nvidia-cuda-runtime-cu11", version="11.8.89"))
    assert hit(judge(extension, more=(stray,))).confidence is Confidence.LIKELY


def test_another_cuda_whose_runtime_is_found_is_fine() -> None:
    quiet(judge(file(cuda="11")))


def test_a_library_of_torchs_own_cuda_is_another_matter() -> None:
    quiet(judge(file(libraries=("libcusparse.so.12",), cuda="12")))


def bitsandbytes(*cudas: tuple[str, tuple[str, ...]]) -> list[Extension]:
    return [
        file("bitsandbytes", version="0.45.5", cuda=cuda[:2], libraries=missing, needs_torch=False,
             name=f"bitsandbytes/libbitsandbytes_cuda{cuda}.so")
        for cuda, missing in cudas
    ]  # fmt: skip


def test_of_bitsandbytes_the_library_for_torchs_cuda_counts() -> None:
    old = ("118", ("libcudart.so.11.0", "libcublas.so.11"))
    quiet(judge(*bitsandbytes(old, ("124", ()), ("128", ()))))
    quiet(judge(*bitsandbytes(old), torch=CPU))
    found = hit(judge(*bitsandbytes(old)))
    assert "has only libraries for CUDA 11" in found.headline
    assert "built for CUDA 12.8" in found.headline


def test_what_is_not_linked_with_torch_is_told_and_never_blamed() -> None:
    alone = file("onnxruntime-gpu", libraries=("libcudart.so.13",), needs_torch=False, cuda="13")
    answer = judge(alone)
    assert isinstance(answer, NotApplicable)
    assert "onnxruntime-gpu 2.8.3 needs libcudart.so.13" in answer.reason
    assert "may load the library itself" in answer.reason
    beside = judge(alone, file())
    assert isinstance(beside, Fine)
    assert "CUDA: flash-attn 2.8.3; onnxruntime-gpu 2.8.3 needs" in beside.reason
    quiet(judge(replace(alone, requires_torch=True)))


def test_a_package_that_loads_its_cuda_itself_leaves_the_question_open() -> None:
    extension = file(libraries=("libcudart.so.11.0",), cuda="11", loads=True)
    with pytest.raises(UnknownFactError, match="may load it itself") as raised:
        judge(extension)
    assert raised.value.fact == "extensions.extensions.0.loads_missing"
    quiet(judge(replace(extension, cuda="12")))
    hit(judge(replace(extension, missing_symbols=[DECREF], missing_symbol_count=1)))


def test_the_part_for_torch_of_a_package_that_does_without_is_mentioned() -> None:
    found = hit(judge(file("open3d", symbols=(DECREF,), optional=True, name="open3d/torch_ops.so")))
    assert found.severity is Severity.INFO
    assert "open3d/torch_ops.so, which was compiled for another PyTorch" in found.headline
    assert "works without PyTorch" in found.headline
    assert found.fixes[0].text.startswith("Nothing needs to be done")


def test_what_is_only_mentioned_is_not_named_beside_an_error() -> None:
    aside = file("open3d", symbols=(DECREF,), optional=True)
    found = hit(judge(aside, file(symbols=(DECREF,))))
    assert found.severity is Severity.ERROR
    assert "open3d" not in found.headline


def test_of_variants_that_all_fail_one_cannot_say_which_is_taken() -> None:
    def variant(number: str, *symbols: str) -> Extension:
        return file("addons", name=f"ext/addon_{number}.so", symbols=symbols, cuda="")

    found = hit(judge(variant("24", DECREF), variant("25", DECREF)))
    assert found.severity is Severity.INFO
    assert "uses one or none" in found.headline
    quiet(judge(variant("24", DECREF), variant("29")))
    whole = file("addons", name="ext/core.so", symbols=(DECREF,))
    assert (
        hit(judge(variant("24", DECREF), variant("25", DECREF), whole)).severity is Severity.ERROR
    )


@each(("release", "severity"), [("24", None), ("29", Severity.INFO)])
def test_variants_for_other_releases_of_torch_are_not_for_this_one(
    release: str, severity: Severity | None
) -> None:
    """torch-c-dlpack-ext, which vllm brings, has nothing for a torch that needs no add-on."""

    def variant(kind: str) -> Extension:
        name = f"torch_c_dlpack_ext/libtorch_c_dlpack_addon_torch{release}-{kind}.so"
        extension = file("torch-c-dlpack-ext", name=name, symbols=(DECREF,), cuda="")
        return replace(
            extension, variant_of="torch_c_dlpack_ext/libtorch_c_dlpack_addon_torch##.so"
        )

    answer = judge(variant("cpu"), variant("cuda"))
    if severity is None:
        quiet(answer)
    else:
        assert hit(answer).severity is severity


def test_files_that_were_left_out_leave_the_question_open() -> None:
    def beside(*files: Extension) -> Judgement:
        return ask(
            "extension-abi-mismatch", LINUX, HOST, NO_VARIABLES, TORCH, PYTHON, on_bus(A100),
            Extensions(extensions=list(files), left_out="the disk is slow"),
        )  # fmt: skip

    for files in ((), (file(),)):
        with pytest.raises(UnknownFactError, match="the disk is slow"):
            beside(*files)
    hit(beside(file(symbols=(DECREF,))))


def test_dlls_of_windows() -> None:
    cpu = hit(judge(file(libraries=("c10_cuda.dll",)), torch=CPU))
    assert "(it needs c10_cuda.dll)" in cpu.headline
    other = hit(judge(file(libraries=("vcomp140.dll", "cudart64_110.dll"), cuda="11")))
    assert "the loader does not find cudart64_110.dll" in other.headline
    runtime = hit(judge(file(libraries=("vcomp140.dll",), cuda="11")))
    assert "needs vcomp140.dll of Microsoft's Visual C++ runtime" in runtime.headline
    assert "vc_redist" in runtime.fixes[0].text


def test_of_variants_one_that_loads_is_enough() -> None:
    quiet(
        judge(
            file("dgl", name="dgl/pytorch/libadapter_2.1.0.so", symbols=(DECREF,)),
            file("dgl", name="dgl/pytorch/libadapter_2.9.0.so"),
        )
    )


def test_a_file_of_another_python_is_passed_over() -> None:
    right = file("pkg", name="pkg/_C.cpython-311-x86_64-linux-gnu.so", python="311")
    wrong = file("pkg", name="pkg/_D.cpython-310.so", python="310", symbols=(DECREF,))
    quiet(judge(right, wrong))


def test_a_package_for_another_python_only() -> None:
    found = hit(judge(file("pkg", version="1.0", python="310")))
    assert "compiled for CPython 3.10, but this is 3.11.7" in found.headline
    assert found.confidence is Confidence.LIKELY


def test_torchao_goes_on_without_its_code() -> None:
    found = hit(judge(file("torchao", symbols=(DECREF,))))
    assert found.severity is Severity.WARNING
    quiet(judge(file("torchao", libraries=("libtorch_cuda.so",)), torch=CPU))


def test_the_worst_comes_first_and_all_are_named() -> None:
    found = hit(
        judge(file("torchao", symbols=(DECREF,)), file("vllm", version="1", symbols=(DECREF,)))
    )
    assert found.severity is Severity.ERROR
    assert found.headline.startswith("vllm 1 ")
    assert "torchao" in found.headline


@each("companion", ["torchvision", "torchaudio", "torchtext"])
def test_the_companions_are_left_to_their_own_rule(companion: str) -> None:
    quiet(judge(file(companion, symbols=(DECREF,))))


def test_nothing_compiled_and_no_torch() -> None:
    quiet(judge())
    quiet(judge(file(symbols=(DECREF,)), torch=NO_TORCH))


def test_symbols_that_were_not_compared_are_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"extensions\.extensions\.0\.missing_symbols"):
        judge(file(symbols=None))
