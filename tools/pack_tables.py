#!/usr/bin/env python3
# a script of this repository: it prints
"""Pack compat_tables/ into the zip file that `gpucheck tables update` takes.

    python tools/pack_tables.py --out dist/gpucheck-tables.zip

The same tables make the same bytes. The SHA-256 is printed.
"""

import argparse
import hashlib
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

TABLES = Path(__file__).resolve().parent.parent / "compat_tables"
_DAY = (1980, 1, 1, 0, 0, 0)  # of every file: the day of the archive is no fact


def pack(folder: Path, out: Path) -> str:
    """Write the tables of a folder into a zip file, and return its SHA-256."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.glob("*.json")):
            entry = zipfile.ZipInfo(file.name, _DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())
    return hashlib.sha256(out.read_bytes()).hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tool."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, required=True, help="the zip file")
    options = parser.parse_args(arguments)
    print(pack(TABLES, options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
