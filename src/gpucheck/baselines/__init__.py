"""States of a machine that worked: they are kept, and what is wrong today is compared with them.

:mod:`~gpucheck.baselines.store` has the files, :mod:`~gpucheck.baselines.words` finds the change
that explains a finding and the hosts that differ from their like, and
:mod:`~gpucheck.output.lock` writes the packages of a state down for an installer.
"""
