"""Compiled files, read without running them: ELF, PE, GPU code, and what a loader would find."""
