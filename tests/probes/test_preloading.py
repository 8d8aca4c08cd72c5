"""What torch loads by path, read from its functions in the forms that they have had."""

import ast
import sysconfig
import time
from pathlib import Path

import preloading_forms
import pytest
from each import each
from preloading_forms import FORMS, SINCE_2_5, WITH_BUILTINS, WITH_CUBLASLT, WITH_CUDA_11

from gpucheck.probes.reading.preloading import Entry, Preloading, understand

AFTER_A_FAILURE = {
    "1.12": (), "1.13.1": ("cublas libcublas", "cudnn libcudnn"),
    "2.0": WITH_CUDA_11, "2.1": WITH_CUDA_11, "2.4": WITH_CUDA_11,
    "2.5.0": preloading_forms.WITH_CUFILE, "2.5.1": SINCE_2_5,
    "2.6": preloading_forms.WITH_SPARSELT,
    "2.7": (*preloading_forms.WITH_SPARSELT, "cufile libcufile"),
    "2.8": (*preloading_forms.WITHOUT_NVTX, "cufile libcufile"),
    "2.9": (*preloading_forms.WITH_NVSHMEM, "nvtx libnvToolsExt"),
    "2.10": (*WITH_BUILTINS, "nvtx libnvToolsExt"),
    "2.11": (*WITH_CUBLASLT, "nvtx libnvToolsExt"),
    "2.14": (*WITH_CUBLASLT, "nvtx libnvToolsExt"),
    "2.15": (*preloading_forms.WITHOUT_CURAND, "nvtx libnvToolsExt"),
}  # fmt: skip
ALWAYS = {
    **dict.fromkeys(("2.6", "2.7", "2.8"), ("cuda_nvrtc libnvrtc", "nvjitlink libnvJitLink")),
    "2.9": ("cuda_nvrtc libnvrtc", "cuda_nvrtc libnvrtc-builtins", "nvjitlink libnvJitLink"),
    **{name: AFTER_A_FAILURE[name] for name in ("2.10", "2.11", "2.14", "2.15")},
}
MAPPED = {
    **dict.fromkeys(("2.6", "2.7", "2.8"), "nvidia/cuda_runtime/lib/libcudart.so"),
    **dict.fromkeys(("2.9", "2.10", "2.11", "2.14", "2.15"), "libcudart.so"),
}
BELOW_NVIDIA = ("nvidia/{}/lib",)
TWO_PLACES = ("nvidia/{}/lib", "{}/lib")
THREE_PLACES = ("nvidia/{}/lib", "nvidia/cu12/lib", "{}/lib")
PLACES = {
    **dict.fromkeys(("1.13.1", "2.0", "2.1", "2.4", "2.5.0", "2.5.1"), BELOW_NVIDIA),
    **dict.fromkeys(("2.6", "2.7", "2.8"), TWO_PLACES),
    **dict.fromkeys(("2.9", "2.10", "2.11", "2.14", "2.15"), THREE_PLACES),
}
OF_2_1 = FORMS["2.1"]
OF_2_6 = FORMS["2.6"]
OF_2_7 = FORMS["2.7"]
OF_2_15 = FORMS["2.15"]


def names(entries: tuple[Entry, ...]) -> tuple[str, ...]:
    """Return the entries as the forms list them: the folder and the stem of the library."""
    parts = [(entry.patterns[0].split("/")[1], entry.name.partition(".so")[0]) for entry in entries]
    return tuple(f"{folder} {stem}" for folder, stem in parts)


@each("release", FORMS)
def test_every_released_form_is_understood(release: str) -> None:
    ast.parse(FORMS[release])
    found = understand(FORMS[release], "12.6")
    assert names(found.always) == ALWAYS.get(release, ())
    assert names(found.on_error) == AFTER_A_FAILURE[release]
    assert found.mapped == ((MAPPED[release],) if release in MAPPED else ())


@each("release", PLACES)
def test_where_each_release_looks(release: str) -> None:
    found = understand(FORMS[release], "12.6")
    for entry in (*found.always, *found.on_error):
        folder = entry.patterns[0].split("/")[1]
        wanted = [f"{place.format(folder)}/{entry.name}" for place in PLACES[release]]
        assert list(entry.patterns) == wanted
    until_2_6 = release in ("1.13.1", "2.0", "2.1", "2.4", "2.5.0", "2.5.1", "2.6")
    assert {entry.beside for entry in found.on_error} == {"nvidia" if until_2_6 else ""}


def test_torch_1_12_loads_nothing_by_path() -> None:
    assert understand(FORMS["1.12"]) == Preloading()
    assert understand(FORMS["1.12"]).words() == ""


def test_torch_1_13_has_two_names() -> None:
    found = understand(FORMS["1.13.1"])
    assert found.on_error == (
        Entry(("nvidia/cublas/lib/libcublas.so.11",), beside="nvidia"),
        Entry(("nvidia/cudnn/lib/libcudnn.so.8",), beside="nvidia"),
    )
    assert found.error_names == ("libcublas.so.11",)
    assert found.together
    assert found.words() == "libcublas, libcudnn when libtorch_global_deps cannot be loaded"


def test_torch_2_1_loads_only_after_a_failure() -> None:
    found = understand(OF_2_1)
    assert found.always == ()
    assert all(entry.required for entry in found.on_error)
    assert found.error_names == tuple(line.split()[1] for line in WITH_CUDA_11)
    assert not found.together


def test_cufile_is_loaded_with_cuda_12_only() -> None:
    assert "cufile libcufile" in names(understand(OF_2_7, "12.8").on_error)
    assert "cufile libcufile" not in names(understand(OF_2_7, "11.8").on_error)
    assert "cufile libcufile" not in names(understand(OF_2_7, None).on_error)


def test_the_folder_of_cuda_13_is_that_of_the_build() -> None:
    entry = understand(OF_2_15, "13.2").always[0]
    assert entry.patterns[1] == "nvidia/cu13/lib/libcublasLt.so.*[0-9]"
    without = understand(OF_2_15, None).always[0]
    assert len(without.patterns) == 2


def test_torch_2_15_always_loads_what_is_there() -> None:
    found = understand(OF_2_15, "13.2")
    assert not any(entry.required for entry in found.always)
    assert [entry.required for entry in found.on_error] == [True] * 15 + [False]
    assert found.error_names[:2] == ("libcublasLt", "libcublas")
    assert "libnvToolsExt" not in found.error_names


def test_the_default_of_required_counts_where_nothing_is_given() -> None:
    found = understand(
        OF_2_15.replace("_preload_cuda_deps(required=False)", "_preload_cuda_deps()")
    )
    assert [entry.required for entry in found.always] == [True] * 15 + [False]


@each(
    ("old", "new"),
    [
        ('if "libcudart.so" not in _maps:\n                return\n',
         'if "libcudart.so" in _maps:\n                '),
        ('if "libcudart.so" not in _maps:', 'if not ("libcudart.so" in _maps):'),
        ('with open("/proc/self/maps") as f:\n                _maps = f.read()',
         '_maps = Path("/proc/self/maps").read_text()'),
        ('os.path.join(path, "nvidia", lib_folder, "lib", lib_name)',
         'str(Path(path) / "nvidia" / lib_folder / "lib" / lib_name)'),
        ('os.path.join(path, "nvidia", lib_folder, "lib", lib_name)',
         'f"{path}/nvidia/{lib_folder}/lib/{lib_name}"'),
        ('cuda_version.split(".")[0]', 'cuda_version.partition(".")[0]'),
        ("for lib_folder, lib_name in cuda_libs:", "for lib_folder, lib_name in dict(cuda_libs):"),
        ("_preload_cuda_lib", "_load_one_of_them"),
        ("_get_cuda_dep_paths", "_places"),
    ],
)  # fmt: skip
def test_the_same_in_other_words_is_understood_or_unknown(old: str, new: str) -> None:
    """A form that no release has is understood by what it says, and never misunderstood."""
    assert old in OF_2_15
    text = OF_2_15.replace(old, new)
    ast.parse(text)
    if "dict(" in new:
        with pytest.raises(ValueError, match="understand"):
            understand(text, "13.2")
    else:
        assert understand(text, "13.2") == understand(OF_2_15, "13.2")


@each(
    ("old", "new"),
    [
        ("def _load_global_deps", "def _load_other_deps"),
        ('if "libcudart.so" not in _maps:', "if not _maps:"),
        ('if "libcudart.so" not in _maps:', 'if "libcudart.so" not in os.environ:'),
        ('open("/proc/self/maps")', 'open("/proc/1/maps")'),
        ("    _preload_cuda_deps(required=False)", "    ctypes.CDLL(found_somewhere)"),
        ("for lib_folder, lib_name in cuda_libs:", "for lib_folder, lib_name in others():"),
        ('os.path.join(path, "nvidia", lib_folder, "lib", lib_name)', "pattern_of(lib_name)"),
        ('f"cu{major}"', 'f"{kind}{major}"'),
        ("    try:\n        ctypes.CDLL(deps_path", "    try:\n        os.stat(deps_path"),
        ("    for path in sys.path:\n", "    for path in site.getsitepackages():\n"),
        ("        _preload_cuda_deps(err)\n", "        pass\n    _preload_cuda_deps()\n"),
    ],
)  # fmt: skip
def test_another_form_is_not_understood(old: str, new: str) -> None:
    assert old in OF_2_15
    with pytest.raises(ValueError, match=r"cannot tell|underst[ao]|no function|not Python"):
        understand(OF_2_15.replace(old, new), "13.2")


@each("text", ["", "def _load_global_deps(:\n  pass", "\0", "x = 1\n" * 1000])
def test_text_that_is_no_torch(text: str) -> None:
    with pytest.raises(ValueError, match=r"cannot tell|underst[ao]|no function|not Python"):
        understand(text)


LISTS = str(list(range(300)))


@each(
    "text",
    [
        # Two functions that call each other, loops in loops, and deep nesting.
        OF_2_15.replace(" _preload_cuda_lib(lib_folder, ", " _preload_cuda_deps(lib_folder, "),
        OF_2_6.replace(
            '            _preload_cuda_deps("cuda_nvrtc", "libnvrtc.so.*[0-9]")\n',
            f"            for a in {LISTS}:\n                for b in {LISTS}:\n"
            '                    _preload_cuda_deps("cuda_nvrtc", "libnvrtc.so.*[0-9]")\n',
        ),
        OF_2_6.replace("if not lib_path:", f"if {'not ' * 50_000}lib_path:"),
        OF_2_6.replace('"nvjitlink", "libnvJitLink', f'{"+".join(["s"] * 20_000)}, "libnvJitLink'),
    ],
)  # fmt: skip
def test_hostile_source_ends_soon_and_is_not_understood(text: str) -> None:
    assert text not in (OF_2_15, OF_2_6)
    with pytest.raises(ValueError, match=r"cannot tell|underst[ao]|not Python"):
        understand(text, "13.2")


def test_the_real_torch_of_this_interpreter_is_understood() -> None:
    # PYTHONPATH may have something else of this name.
    init = Path(sysconfig.get_path("purelib"), "torch", "__init__.py")
    if not init.exists():
        pytest.skip("no torch here")
    found = understand(init.read_text(encoding="utf-8"))
    assert found.on_error
    assert found.on_error[0].patterns[0].startswith("nvidia/cublas/lib/")


def test_the_text_between_functions_does_not_matter() -> None:
    body = "x = (\n    1,\n)\n"
    assert understand(body + OF_2_1 + body) == understand(OF_2_1)


@each(
    "lines",
    [
        ["x = int(1e999)"],
        ["x = ['a']", *["x = [x, x]"] * 26, "y = str(x)"],
        ["x = ['a']", *["x = [x, x]"] * 26, "y = f'{x}'"],
        ["x = ['a']", "y = ['a']", *["x = [x, x]", "y = [y, y]"] * 28, "z = x == y"],
    ],
)
def test_values_without_an_end_are_unknown_at_once(lines: list[str]) -> None:
    at = '            _preload_cuda_deps("nvjitlink"'
    assert at in OF_2_6
    text = OF_2_6.replace(at, "".join(f"            {line}\n" for line in lines) + at)

    start = time.process_time()
    assert understand(text, "12.6") == understand(OF_2_6, "12.6")
    assert time.process_time() - start < 5


def test_what_is_followed_is_bounded_however_functions_multiply_it() -> None:
    calls = "".join(f"def h{at}():\n" + f"    h{at + 1}()\n" * 30 for at in range(4))
    searches = "def _preload_cuda_deps():\n    h0()\n    CDLL(path)\n"
    load = "def _load_global_deps():\n    try:\n        CDLL(path)\n    except OSError:\n"
    with pytest.raises(ValueError, match="too many steps"):
        understand(f"{load}        _preload_cuda_deps()\n{calls}{searches}")


def test_many_conditions_take_no_longer_than_their_number() -> None:
    load = "def _load_global_deps():\n    try:\n        CDLL(path)\n    except OSError:\n"
    start = time.process_time()
    assert understand(load + "        if a: b\n" * 3900) == Preloading()
    assert time.process_time() - start < 5
