"""Which compiled files of a package are variants, of which it loads one."""

from each import each

from gpucheck.probes.reading.extension_files import CandidateFile


@each(
    ("one", "other", "alike"),
    [
        ("p/addon_torch29-cpu.so", "p/addon_torch28-cuda.so", True),
        ("p/libx_cuda118.so", "p/libx_cuda130.so", True),
        ("hook.abi3.so", "hook_cu13.abi3.so", True),
        ("hook.abi3.so", "hook_2.abi3.so", False),
        ("hook.so", "hook_cuda.so", False),
        ("p/_scatter_cpu.so", "p/_scatter_cuda.so", False),
        ("p/_s_cpu.cpython-311-x86_64-linux-gnu.so", "p/_s_cuda.cpython-311-x86_64-linux-gnu.so",
         False),
    ],
)  # fmt: skip
def test_which_files_are_variants(one: str, other: str, alike: bool) -> None:  # noqa: FBT001  # a parameter of the test
    first, second = (
        CandidateFile(path=f"/s/{path}", entry="/s", inside=path) for path in (one, other)
    )
    assert (first.variant_of == second.variant_of) is alike
