"""The page ``docs/facts.md``: every key of ``gpucheck compat`` and the facts that it fills."""

from gpucheck.readers.compat_keys import ALIASES, KEYS, Key

_HEAD = """\
# The keys of `gpucheck compat`

Made from `src/gpucheck/readers/compat_keys.py` by `python -m gpucheck.readers.keys_page`; do not
edit by hand.

A key that is absent says nothing. `none` on the command line and `null` in JSON say that the thing
was looked for and is not there. Lists are separated by commas, or their key is repeated. `gpu` and
`compute_capability` may both be given only in equal number.

`torch=2.9.1` alone means the default build of its source (`torch_source`, PyPI unless given) on its
platform. Where `os` or `arch` is not given, wheels are those for Linux and for x86_64 (aarch64 on a
Jetson). A driver that is named serves the GPUs that its branch drives, unless an error is given.

The findings named last are those that look at the key; while this version has none of them, the key
is accepted and listed in the output as not judged.

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
    slugs = ", ".join(key.judged_by)
    return f"| `{key.name}` | {key.form} | {'yes' if key.many else ''} | {fields} | {slugs} |\n"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  # the page is the output of this program
