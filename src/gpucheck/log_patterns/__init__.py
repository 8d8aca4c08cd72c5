r"""Messages: what programs print, and which finding each message points to.

A finding that has messages has a TOML file beside its module, with the same name. Nothing is
registered: a file in that folder is read. ``form.py`` defines every key, and a key that it does not
define is an error. The keys of a file::

    any_program = true          # other programs print these messages, too: they count only in a
                                # text about PyTorch, CUDA or a GPU, as weak ones always do

    [[fix]]                     # what to do about the finding, when no fact says more
    text = "…"
    commands = ["…"]
    verify = "gpucheck"         # the default
    restart = "machine"         # what the text asks to restart (facts/claims.py), unless a command
                                # restarts it

    [condition.in-a-container]  # a condition that several messages share
    any_of = ["docker", "container"]

    [[message]]
    name = "no-driver"          # stable: saved reports refer to it
    strength = "points"
    literal = "no nvidia driver"
    pattern = 'no NVIDIA driver(?: (?P<version>\d{3}))?'
    says = "There is no driver {version}"
    sample = "…"                # a line that must match
    other = "…"                 # a line that holds something like it and must not match

The translations of ``text`` and ``says`` are in the catalogues (``language/``).

Patterns, samples and literals stand in one line each; TOML's single quotes leave backslashes alone.
Only lines that hold ``literal``, in lower case, are matched, so it should be rare. It is the
pattern as well where no ``pattern`` is given.

**Strength** says what the message says about the cause, and so how sure the finding is:

========== =============================================== =========
names      it names the cause itself                       certain
points     it points to the cause, unless facts disagree   likely
fits       it fits this cause best of several              likely
symptom    it is a symptom that several causes have        possible
========== =============================================== =========

The strongest finding of a text is its cause; weaker ones are suppressed. Where two findings of the
same strength meet, ``tie_break`` (a small number, 0 where it is not given) says which comes first.
Of several messages of one finding the strongest gives the headline, and the first in the file among
those that are equally strong: each file, or each section of a long one, starts with the strongest.

**Conditions.** ``beside`` is a list of conditions that must all hold, ``unless`` one that must not
hold. A condition holds if one of its parts does::

    beside = [{ any_of = ["nccl", "gloo"] }, { words = ["hang", "hangs"], said = ["stuck"] }]
    unless = { facts.cuda_available = true, named = ["in-a-container"] }

``any_of`` are literals, ``words`` whole words of letters, ``said`` literals in lines that are not
source code, ``facts`` what readers found in the text, and ``named`` conditions of the same file.
What must stand ``beside`` a message stands within some lines of it, at the start of a word
(``_NEAR`` in ``matcher.py``); ``unless`` looks at the whole text. ``when`` names a condition on the
numbers of the match; these are the functions in ``matcher.py``.

**Other keys of a message.** ``stands = true``: facts that look fine do not refute it. ``severity``
is "error" where it is not given. ``elsewhere = true``: it counts only in a text that says nothing
about PyTorch, CUDA or a GPU. ``code = true``: it counts in source code, too. ``distinct`` is a
named group that must be found with two different values, in lines that agree in the groups of
``same``. ``[[message.fix]]`` is what to do where the message says more than the finding,
``fixes_of`` the name of another message with the same fixes; ``{group}`` in a command stands for a
named group, which must match digits only.

A wheel has the same values in one JSON file, which the build hook writes; an editable install and
the source tree read the TOML.
"""
