"""Plans and runs the self-tests of ``worker/`` in the target interpreter."""
