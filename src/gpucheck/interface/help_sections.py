"""The help of a command with many options: some of them stand under a heading of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from gpucheck.language import say

_WIDEST = 30  # as in click: a longer one has a line of its own


class Sectioned(click.Command):
    """A command whose help lists some options under other headings than "Options".

    Args:
        args: of click.
        sections: for each heading the names of its parameters.
        more: of click.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401  # click's
        sections: Mapping[str, Sequence[str]],
        **more: Any,  # noqa: ANN401  # click's
    ) -> None:
        super().__init__(*args, **more)
        self._sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then those of each section."""
        records = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        elsewhere = {name for names in self._sections.values() for name in names}
        usual = [name for name in records if name not in elsewhere]
        column = min(_WIDEST, max(len(row[0]) for row in records.values() if row is not None))
        for heading, names in {say("Options"): usual, **self._sections}.items():
            rows = [row for name in names if (row := records[name]) is not None]
            with formatter.section(heading):
                formatter.write_dl([(option.ljust(column), words) for option, words in rows])
