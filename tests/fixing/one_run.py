"""Runs the steps of a journal without diagnosing anything, to be killed at any moment."""

import sys
from pathlib import Path

import msgspec

from gpucheck.fixing import carrying_out
from gpucheck.fixing.journal import Journal, new_folder

journal = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Journal)
lock = carrying_out.lock_of(journal.place)
assert lock is not None
folder = new_folder(journal.place, "1")
sys.stdout.write("begun\n")
sys.stdout.flush()
carrying_out.begin(folder, journal)
sys.stdout.write("kept\n")
sys.stdout.flush()
carrying_out.carry_out(folder, journal, lock, None)
