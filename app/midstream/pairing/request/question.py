"""What a user, or the session itself, asks of the model."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the model, an edit or an answer, and about which lines.

    Attributes:
        text: The instruction or the question; ``@path`` in it sends that file along.
        path: The file that the user looks at, ``None`` to find the one that the text is about.
        cursor: 0-based line of the cursor, in the file as it is on disk (accepted hunks included,
            others not).
        selection: 0-based half-open range of such lines that overrides the search.
        change: The change under the cursor, and what is decided with it; for questions only.
            It does not count when questions are compared, as every decision changes it.
        consume: Whether the AI comments of the region are removed by the change.
        background: Whether the session asks by itself.
        known: What the model would answer where none is needed; ``None`` to ask the model.
        known_format: The format of that: ``region`` for the new lines.
        asked: What the model is asked, where that is not the instruction as it was typed.
        in_full: The request about the whole file, where ``asked`` is about the proposed text.
        doubt: Why the answer is doubtful whatever it is; its hunks are flagged then.
    """

    text: str
    path: str | None = None
    cursor: int | None = None
    selection: tuple[int, int] | None = None
    change: str = field(default="", compare=False)
    consume: bool = False
    background: bool = False
    known: str | None = None
    known_format: str = "region"
    asked: str = ""
    in_full: str = ""
    doubt: str = ""
