"""A machine or a project that somebody describes, judged by the same findings as a real one.

Three products share this wing:

- ``compat``: ``keys`` knows the words; ``judge`` fills the sections of a snapshot from them, with
  ``gpus``, ``torch`` and ``libraries``, has the engine diagnose it, and asks for what was not said.
- ``lint``: in ``files``. ``lint`` chooses a reader (in ``dockerfile``, ``dependencies``,
  ``job_files``), which makes a ``Project`` of a file; ``shell`` decides what a command installs,
  and where; the rules complain (``build_rules``, ``image_rules``, ``package_pins``), and
  ``described`` asks the findings as ``compat`` does; ``lint`` puts it all together.
- ``recommend`` and ``env``: ``recommending`` and ``lock``.
"""
