"""What a snapshot keeps of a line of a ticket."""

LONGEST = 300
"""Characters of a line that are quoted."""


def quote(text: str, limit: int = LONGEST) -> str:
    """Return the beginning of a text, without a word that the limit cuts.

    Redaction knows a name by its whole form, and what is left of one would stay.
    """
    begun = text.strip()[: limit + 1]
    return begun if len(begun) <= limit else begun[:limit].rpartition(" ")[0] or begun[:limit]
