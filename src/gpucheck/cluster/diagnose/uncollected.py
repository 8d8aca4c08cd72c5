"""Work on hundreds of thousands of small objects that refer to one another in no circle."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Search for no circles of garbage meanwhile; nested, the outermost counts.

    The collector would walk through all living objects again and again: with 100,000 ranks that
    takes as long as the judgement itself.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
