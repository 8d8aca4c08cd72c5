"""The commands: each module has the name of one, and defines ``COMMAND``."""
