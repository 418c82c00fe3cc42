"""Encoding of requests that ends: a model folder may come from anywhere.

The patterns in a ``tokenizer.json`` can take exponential time, and the library panics where it
gives up on one.  A panic is no ``Exception``: it would end the thread that runs the model without a
word.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from midstream.engine.folder import ModelFolderError
from midstream.engine.plan import EncodedRequest, PromptStyle
from midstream.engine.types import GenerateRequest

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ENCODE_S: Final = 30.0
"""How long a request may take to become tokens; a long one takes about a second."""

_Made = TypeVar("_Made")


def token_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[int]:
    """The tokens of texts, one behind the other; other threads run meanwhile.

    ``Tokenizer.encode`` would keep the interpreter's lock.  Half a surrogate pair, which a template
    may write, counts as a question mark: it is no text.
    """
    whole = [text.encode("utf-8", "replace").decode() for text in texts]
    encoded = tokenizer.encode_batch(whole, add_special_tokens=False)
    return list(chain.from_iterable(one.ids for one in encoded))


class BoundedPrompt:
    """A ``PromptStyle`` whose work ends.

    Attributes:
        vocab_size: How many tokens its tokenizer knows.
    """

    def __init__(self, tokenizer: Path, load: Callable[[], PromptStyle]) -> None:
        """Load the style.

        Raises:
            ModelFolderError: It takes too long, or the tokenizer fails.
        """
        self._tokenizer = tokenizer
        self._endless = False
        self._style = self._ended(load)
        self.vocab_size = self._style.vocab_size

    def plan(self, request: GenerateRequest) -> EncodedRequest:
        """Encode a request; errors are those of the style and of ``__init__``."""
        return self._ended(lambda: self._style.plan(request))

    def _ended(self, work: Callable[[], _Made]) -> _Made:
        """The result of work, which is left behind in its thread if it does not end."""
        task = _BoundedWork(work)
        if not self._endless:
            thread = threading.Thread(target=task, name="encoding", daemon=True)
            thread.start()
            thread.join(ENCODE_S)
            self._endless = thread.is_alive()
        if self._endless:
            raise ModelFolderError(
                f"{self._tokenizer} takes longer than {ENCODE_S:.0f} s for a request; use another "
                "model, or copy the model's original file again."
            )
        if isinstance(task.error, Exception):
            raise task.error
        if task.error is not None:
            raise ModelFolderError(
                f"{self._tokenizer} fails for this request ({task.error}); use another model, or "
                "copy the model's original file again."
            )
        return task.made[0]


class _BoundedWork(Generic[_Made]):
    """Work with its outcome."""

    def __init__(self, work: Callable[[], _Made]) -> None:
        self._work = work
        self.made: list[_Made] = []
        self.error: BaseException | None = None

    def __call__(self) -> None:
        try:
            self.made.append(self._work())
        except BaseException as error:
            self.error = error
