"""Project files (Dockerfiles, requirements, manifests) judged before anything is built.

``dockerfile``, ``dependencies`` and ``job_files`` turn one file into the facts of ``model``, each
with its line. ``build_rules``, ``image_rules`` and ``package_pins`` judge them;
where a finding exists, they describe a machine and ask the engine. Nothing is executed, and no
other file is opened. Whatever a reader does not understand is left out, so the rules are silent.
"""
