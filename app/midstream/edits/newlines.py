"""Line ends of a stream in any chunking: one fold, applied where text comes in."""

from __future__ import annotations


class NewlineFolder:
    r"""Folds ``"\r\n"`` and lone ``"\r"`` to ``"\n"``, across chunk borders.

    >>> folder = NewlineFolder()
    >>> folder.feed("a\r") + folder.feed("\nb") + folder.finish()
    'a\nb'
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = False

    def feed(self, text: str) -> str:
        r"""The folded text; a ``"\r"`` at the end is held until the next character is known."""
        if not self._held and "\r" not in text:
            return text
        if self._held:
            if not text:
                return text
            text = "\r" + text
        self._held = text.endswith("\r")
        if self._held:
            text = text[:-1]
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def release(self) -> str:
        r"""The ``"\r"`` that is held, as it is, for someone who goes on folding."""
        held, self._held = self._held, False
        return "\r" if held else ""

    def finish(self) -> str:
        r"""``"\n"`` if a ``"\r"`` was held at the end, else ``""``."""
        held, self._held = self._held, False
        return "\n" if held else ""
