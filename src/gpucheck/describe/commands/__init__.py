"""The commands of this wing: each module has the name of one, and defines ``COMMAND``."""
