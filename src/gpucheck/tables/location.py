"""The location of the compatibility tables of this installation."""

from pathlib import Path

from gpucheck.tables.errors import TablesError

_FOLDER = "compat_tables"
INDEX = "index.json"


def tables_dir(explicit: str | None = None) -> Path:
    """Return the folder with index.json and one JSON file per table.

    `explicit` wins and must exist. Otherwise it is the folder inside the package (a wheel), or the
    one next to `src` (an sdist or an editable checkout).

    Raises:
        TablesError: there is none.
    """
    if explicit is not None:
        folder = Path(explicit)
        if not folder.is_dir():
            message = f"The folder of compatibility tables {explicit} does not exist."
            raise TablesError(message)
        return folder
    package = Path(__file__).resolve().parent.parent
    candidates = (package / _FOLDER, package.parent.parent / _FOLDER)
    for folder in candidates:
        if (folder / INDEX).is_file():
            return folder
    places = " or ".join(str(folder) for folder in candidates)
    message = f"This installation of gpucheck has no compatibility tables: no {INDEX} in {places}."
    raise TablesError(message)
