"""What gpucheck does for whoever asks: the command line, a program, or a server for assistants.

Nothing here prints, ends the process, sets a signal handler or knows click. What the asker got
wrong is an error of ``errors``, in one sentence. ``functions`` has the functions that ``gpucheck``
itself offers to programs.
"""
