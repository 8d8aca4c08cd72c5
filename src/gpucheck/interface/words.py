"""Words of whoever asks, which may be almost right, and words of errors."""

from typing import TYPE_CHECKING

from gpucheck.language import Sentence, any_of, in_series, in_turn, say
from gpucheck.language.visible import made_visible

if TYPE_CHECKING:
    from collections.abc import Iterable


def printable(text: str, *, limit: int = 300, keep: str = "") -> str:
    """Return untrusted text without unseen characters, except those to keep, cut to a length.

    Of a sentence only the parameters are cut.
    """
    if isinstance(text, Sentence):
        ours = text.mapped(lambda part: printable(part, limit=limit, keep=keep))
        whole = _visible(ours, keep)
        return ours if whole == ours else whole
    return _visible(text[:limit], keep)


def _visible(text: str, keep: str) -> str:
    return made_visible(text, lambda char: char if char in keep else "?")


def words_of(error: Exception, *, limit: int = 300) -> str:
    """Return what an error says, without control characters; a sentence of ours stays one."""
    first_argument = error.args[0] if error.args else None
    return printable(
        first_argument if isinstance(first_argument, Sentence) else str(error), limit=limit
    )


def meant(name: str, known: "Iterable[str]") -> str:
    """Return "Did you mean"; "" if nothing is similar."""
    from gpucheck.tables.nearest import nearest  # noqa: PLC0415

    near = nearest(name, known)
    return say("Did you mean {names}?", names=any_of(near)) if near else ""


def with_hint(refused: str, hint: str) -> str:
    """Return a refusal with what was probably meant, or with the names that there are."""
    return in_turn([refused, hint]) if hint else refused


def there_are(names: "Iterable[str]") -> str:
    """Return the names that there are."""
    return say("There are {names}.", names=in_series(list(names)))
