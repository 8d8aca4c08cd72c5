"""A program that the system killed, as progress bars, shells and people say it."""

from each import each

from gpucheck import triage


@each(
    "text",
    [
        "torch 2.5.1\nLoading checkpoint shards:  38%|███▊    | 3/8 [00:02<00:03, 1.28it/s]Killed",
        "OSError: 页面文件太小 无法完成操作",
    ],
)
def test_host_memory_is_named(text: str) -> None:
    assert triage(text).root_causes == ("host-out-of-memory",)


def test_a_progress_bar_that_goes_on_is_no_fault() -> None:
    assert triage("100%|█████| 8/8 [00:05<00:00,  1.28it/s]").root_causes == ()
