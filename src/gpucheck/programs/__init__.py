"""gpucheck for programs: the public functions, the server for assistants, and the schemas.

Nothing here prints, ends the process or sets a signal handler. ``functions`` has what ``gpucheck``
itself offers to programs; ``examination`` asks a process of its own, the ``examiner``.
"""
