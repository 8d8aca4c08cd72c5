"""What every wing uses to be asked and to answer: requests, options, listeners, errors, endings.

``request`` declares what can be asked for, ``options`` makes options of it and has those that
several commands share. A use case tells a ``listener`` how far it is, and an error
of ``errors`` says in one sentence what the asker got wrong; ``text`` makes a refusal of the command
line of it.
"""
