"""Reports as HTML: one file that loads nothing, is read without a script, and prints.

``elements`` turns text into markup, and nothing else does. ``page`` is the frame of every page,
with its only style and script. Each other module is one kind of page.
"""
