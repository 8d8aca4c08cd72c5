"""A sentence in a worker's message: its English text, its template and its parameters.

Any code in the target interpreter may have written the message, so it is read with care.
"""

from gpucheck.language.read_back import said_again
from gpucheck.machine.worker_pool.worker_messages import Message


def sentence_in(message: Message, field: str) -> str:
    """Return the text of a field, with its template if the message has a sound one for it."""
    return said_again(str(message.get(field, "")), message.get("said"))
