"""The lines that change while gpucheck runs, in Chinese."""

import io

from gpucheck.doctor.run import Progress
from gpucheck.interface.live_table import table
from gpucheck.language import speaking
from gpucheck.language.columns import cut_to, width_of
from gpucheck.selftests.outcome import ProgressGrid


def test_the_table_of_running_selftests_is_aligned() -> None:
    grid = ProgressGrid()
    grid.put("import-torch", "cuda:0", "passed")
    grid.put("import-torch", "cuda:1", "failed")
    grid.put("memory", "cuda:0", "skipped")
    grid.put("memory", "cuda:1", "running")
    english = table(grid, 100)
    assert english[0].startswith("self-tests (0 s)")
    with speaking("zh"):
        lines = table(grid, 100)
    assert lines[0].startswith("自检（0 秒）")
    assert width_of(lines[0].partition("cuda:0")[0]) == 20
    assert width_of(lines[1].partition("正常")[0]) == 20
    assert width_of(lines[1].partition("失败")[0]) == 29
    assert width_of(lines[2].partition("跳过")[0]) == 20
    with speaking("zh"):
        assert "1 项正常、1 项失败" in table(grid, 30)[1]


def test_a_line_is_cut_by_columns() -> None:
    assert cut_to("自检运行中", 7) == "自检运"
    assert cut_to("abc", 7) == "abc"


def test_the_line_of_running_probes() -> None:
    out = io.StringIO()
    with speaking("zh"):
        Progress(out)(["nvml"], 4.0)
    assert "正在等待 nvml（4 秒；没有持久模式的 GPU 唤醒较慢）" in out.getvalue()
