"""A notebook of three cells: what is wrong with PyTorch and the GPUs of this kernel?

Editors open this file as a notebook; ``jupytext --to ipynb why_no_gpu.py`` makes one of it.
"""

# %% The machine and the PyTorch of this kernel. The last line shows the report.
import sys

import gpucheck

report = gpucheck.check()
report  # noqa: B018  # the notebook shows it

# %% If something is broken, the command that fixes it, for this very kernel.
first = report.first
fix = [command for one in first.fixes for command in one.commands] if first else []
print(report.verdict, *fix, sep="\n")

# %% An error of an earlier cell, by its text.
try:
    import torch

    torch.ones(1, device="cuda")
except Exception:  # noqa: BLE001  # whatever it is, its text names the cause
    import traceback

    found = gpucheck.triage(traceback.format_exc())
    print("The cause:", *found.root_causes, file=sys.stderr)
