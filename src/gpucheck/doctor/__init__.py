"""The doctor: examines this machine and its Python environments, and says what is wrong.

``checking`` asks the machine and judges what it found, ``selftests`` make the GPUs work. ``run`` is
what commands of other wings need to examine this machine, too.
"""
