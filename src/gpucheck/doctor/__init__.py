"""The doctor: examines this machine and its Python environments, and says what is wrong.

``collecting`` asks the machine, ``checking`` judges what it found, ``selftests``
make the GPUs work. ``run`` is what commands of other wings need to examine this machine, too.
"""
