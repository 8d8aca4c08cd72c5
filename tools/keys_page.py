#!/usr/bin/env python3
"""The page ``docs/describe/facts.md``: each key of ``gpucheck compat`` and the facts it fills."""

from gpucheck.describe.keys import ALIASES, KEYS, Key
from gpucheck.findings import all_rules

_HEAD = """\
# The keys of `gpucheck compat`

`python tools/keys_page.py > docs/describe/facts.md` makes this page from the keys and the headers
of the findings. Do not edit it by hand.

If a key is absent, nothing is known about it. `none` on the command line and `null` in JSON mean
that somebody looked for the thing and it is not there. Lists are separated by commas, or their key
is repeated. If `gpu` and `compute_capability` are both given, there must be as many of the one as
of the other.

`torch=2.9.1` alone means the default build of its source (`torch_source`; PyPI if not given) on its
platform. If `os` or `arch` is not given, wheels are those for Linux and for x86_64 (aarch64 on a
Jetson). A named driver serves the GPUs that its branch drives, unless an error is given.

Keys, and values from a short list, are recognised in any case and with `_` or `-`. So are the words
of nvidia-smi and pip: `compute_mode=Exclusive_Process`, `cuda_compat=cuda-compat-13-0`,
`gpu=4090`. In JSON `nvidia_packages` may be an object of names and versions, or what
`pip list --format json` prints.

The last column names the findings that look at the key.

| Key | Value | List | Facts | Looked at by |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the page as Markdown."""
    rows = "".join(_row(key) for key in KEYS.values())
    aliases = ", ".join(f"`{alias}` for `{name}`" for alias, name in ALIASES.items())
    return f"{_HEAD}{rows}\nOther names: {aliases}.\n"


def _row(key: Key) -> str:
    fields = ", ".join(f"`{field}`" for field in key.fields) or "none yet"
    slugs = ", ".join(slug for slug, rule in all_rules().items() if key.name in rule.compat_keys)
    return f"| `{key.name}` | {key.form} | {'yes' if key.many else ''} | {fields} | {slugs} |\n"


if __name__ == "__main__":
    print(page(), end="")  # the page is the output of this program
