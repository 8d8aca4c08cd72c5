"""The location of the compatibility tables of this installation."""

# Names are strings here: every check would pay two milliseconds for importing pathlib.
# ruff: noqa: PTH112, PTH113, PTH118, PTH120

import os
from typing import TYPE_CHECKING

from gpucheck.language import any_of, say
from gpucheck.tables.errors import TablesError

if TYPE_CHECKING:
    from pathlib import Path

HOW_TO_RENEW = say("Newer tables come with a newer gpucheck, or alone (gpucheck tables update)")
_FOLDER = "compat_tables"
INDEX = "index.json"


def tables_dir(explicit: str | None = None) -> "Path":
    """Return the folder, as ``folder_of_tables`` does, as a path."""
    from pathlib import Path  # noqa: PLC0415

    return Path(folder_of_tables(explicit))


def folder_of_tables(explicit: str | None = None) -> str:
    """Return the folder with index.json and one JSON file per table.

    `explicit` wins and must exist. Otherwise it is the folder inside the package (a wheel), or the
    one next to `src` (an sdist or an editable checkout).

    Raises:
        TablesError: there is none.
    """
    if explicit is not None:
        if not os.path.isdir(explicit):
            message = say(
                "The folder of compatibility tables {folder} does not exist.", folder=explicit
            )
            raise TablesError(message)
        return explicit
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    source_tree = os.path.dirname(os.path.dirname(package))
    candidates = [os.path.join(folder, _FOLDER) for folder in (package, source_tree)]
    for folder in candidates:
        if os.path.isfile(os.path.join(folder, INDEX)):
            return folder
    message = say(
        "This installation of gpucheck has no compatibility tables: there is no {file} in "
        "{folders}.",
        file=INDEX,
        folders=any_of(candidates),
    )
    raise TablesError(message)
