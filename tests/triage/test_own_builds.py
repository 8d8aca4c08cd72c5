"""A library that has a build of its own is named with the command that installs it."""

from each import each

from gpucheck import triage

COMMANDS = {
    "ModuleNotFoundError: No module named 'mmcv._ext'": "mim install mmcv",
    "ModuleNotFoundError: No module named 'attn_core_inplace_cuda'": "python setup.py install",
}


@each("line", COMMANDS)
def test_its_own_build_is_advised(line: str) -> None:
    report = triage(f"I use PyTorch 2.1 on an RTX 3090.\n{line}\n")
    assert report.root_causes == ("extension-abi-mismatch",)
    fix = report.findings[0].fixes[0]
    assert COMMANDS[line] in " ".join((fix.text, *fix.commands))
