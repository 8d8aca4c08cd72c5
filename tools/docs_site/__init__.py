"""The documentation site: its sources are written here, Sphinx makes HTML of them.

``findings`` writes the pages of findings, ``sources`` everything that Sphinx reads, ``extension``
is loaded by Sphinx, and ``check`` looks at what has come of it.
"""
