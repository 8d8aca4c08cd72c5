"""Reads compiled files without running them (ELF, PE, GPU code), and simulates the loader."""
