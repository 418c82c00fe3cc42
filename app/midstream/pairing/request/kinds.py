"""Sentences that do not ask for an edit, but for an answer, a key of the screen, or a program.

Such a sentence must not become an edit of the function at the cursor.  Those that nothing here can
carry out raise an error with the action that can; the screen names its key.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from midstream.errors import UserError
from midstream.pairing.request.new_code import find_new_code

if TYPE_CHECKING:
    from midstream.responses.model_info import ModelInfo

_CHOOSES: Final = "chooses a model that can"
_OTHER_MODEL: Final = "--endpoint names a model that can"
_POLITE: Final = r"^\s*(?:(?:please|now|ok(?:ay)?|and|then|just)[\s,]+)*"
_LAST: Final = r"(?:(?:the|that|this|your|my|last|latest|previous|whole|all|these|those)\s+)*"
_EDIT: Final = r"(?:changes?|edits?|decisions?|hunks?|answers?|it|that|this|everything)"
_END: Final = r"(?:\s+(?:again|please|now))*\s*[.!]*\s*$"

_PLAN: Final = re.compile(r"\s*plan:(?P<wish>.*)", re.IGNORECASE | re.DOTALL)


class NotAnEditError(UserError):
    """A sentence asks for something that is not an edit.

    Attributes:
        action: The action of the screen that does it, ``""`` if none does.
        does: What that action does, as the end of a sentence.
    """

    code = "not-an-edit"
    exit_code = 2

    def __init__(self, problem: str, action: str = "", does: str = "", remedy: str = "") -> None:
        super().__init__(problem, remedy)
        self.action = action
        self.does = does


class _Kind(NamedTuple):
    """A kind of request: how it is recognised, and what is said to it."""

    pattern: re.Pattern[str]
    problem: str
    action: str
    does: str
    remedy: str


def _kind(pattern: str, problem: str, action: str, does: str, remedy: str) -> _Kind:
    return _Kind(re.compile(_POLITE + pattern, re.IGNORECASE), problem, action, does, remedy)


_COMMANDS: Final = (
    _kind(
        rf"(?:/help|help(?:\s+me)?){_END}",
        "Nothing was sent to the model", "help.anywhere", "shows the keys",
        "type help in plain mode, or press F1 on the screen",
    ),
    _kind(
        r"/[a-z]+\b(?!/)",
        "There are no commands with a slash", "palette.anywhere", "finds every command by name",
        "type help in plain mode, or press F1 on the screen",
    ),
    _kind(
        rf"(?:undo|revert|take\s+back|roll\s+back)\s+{_LAST}{_EDIT}{_END}|undo{_END}",
        "A decision is undone without the model", "decision.undo",
        "undoes the last decision, on disk as well", "undo does it, on disk as well",
    ),
    _kind(
        rf"redo(?:\s+{_LAST}{_EDIT})?{_END}",
        "A decision is redone without the model", "decision.redo", "redoes it", "redo does it",
    ),
    _kind(
        rf"(?:accept|apply|keep)\s+{_LAST}{_EDIT}{_END}",
        "You decide about hunks, not the model", "hunk.accept", "accepts the hunk at the cursor",
        "accept does it",
    ),
    _kind(
        rf"(?:reject|discard|decline)\s+{_LAST}{_EDIT}{_END}",
        "You decide about hunks, not the model", "hunk.reject", "rejects the hunk at the cursor",
        "reject does it",
    ),
    _kind(
        rf"(?:git\s+)?(?:commit|push)(?:\s+{_LAST}{_EDIT})?{_END}",
        "The model does not commit", "commit", "commits the accepted changes",
        "commit with git, or press C on the screen",
    ),
    _kind(
        rf"(?:stop|cancel|abort)(?:\s+(?:it|that|this|writing|the\s+model))?{_END}",
        "The model is stopped with a key", "model.stop", "stops it", "stop does it",
    ),
    _kind(
        rf"(?:quit|exit|close\s+(?:midstream|the\s+program)){_END}",
        "Nothing was sent to the model", "quit", "quits", "type quit in plain mode",
    ),
    _kind(
        r"(?:re-?)?(?:run|execute|start)\s+(?:(?:the|all|my|our|its|unit|this)\s+)*"
        rf"(?:tests?|test\s+suite|pytest|unittests?|program|script|file|code|it|linters?|ruff|mypy)"
        r"(?:\s+(?:here|(?:in|of)\s+(?:this|the)\s+(?:project|folder|repo|repository)))?"
        rf"{_END}|pytest\b",
        "The model runs no programs", "checks", "runs the tests of this folder",
        "check runs the tests of this folder",
    ),
)  # fmt: skip

_REMOVES: Final = re.compile(
    rf"{_POLITE}(?:remove|delete|drop|eliminate|get\s+rid\s+of|take\s+out)\s+(?:the\s+)?"
    r"(?:(?:whole|entire|unused|dead|old|obsolete)\s+)*(?:(?:function|method|class|def)\s+)?"
    r"`?(?P<name>[^\W\d]\w*(?:(?:\.|::|#)[^\W\d]\w*)*)(?:\(\))?`?"
    r"(?:\s+(?:function|method|class))?(?:\s+(?:from|in|of)\s+[\w./`]+(?:\s+[\w./`]+)?)?"
    r"(?:,?\s+(?:completely|entirely|altogether|please))*\s*[.!]*\s*$",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(
    _POLITE
    + r"(?:(?:(?:can|could|would)\s+you\s+)?(?:explain|describe|tell\s+me|summari[sz]e|walk\s+me)\b"
    r"(?!\s+.*\b(?:doc-?string|comment)s?\b)(?!:\s+(?!how\b|what\b|why\b))"
    r"|(?:why|who|whose|when|where)\b(?!.*,\s)|what(?:'s|\s+(?:is|are|does|do|happens|would|if))\b"
    r"|how\s+(?:do|does|did|is|are|can|could|would|should|many|much|long|often)\b"
    r"|which\s+.*\?\s*$|(?:is|are|does|do|did|has|was)\s+(?:it|this|that|there|the|these|we|you)\b"
    r".*\?\s*$)",
    re.IGNORECASE,
)
_NEW_CODE: Final = re.compile(
    _POLITE
    + r"(?:(?:write|create|generate|add)\s+(?:me\s+)?(?:(?:a|an|some|the|more|new|unit|few)\s+)*"
    r"(?P<tests>tests?|test\s+cases?)\b(?:\s+(?:for|of|to|that|which)\b|\s*[.!]*$)"
    r"|(?:write|create|generate|make|add)\s+(?:me\s+)?(?:a|an)\s+(?:new\s+)?(?:python\s+)?"
    r"(?P<file>file|module|script|package)\b(?!\s*-)"
    r"|(?:write|create|generate|make|add)\s+(?:me\s+)?(?:a|an)\s+(?:new\s+)?(?P<code>function|class)"
    r"(?:\s+(?:called|named|that|which|to|for)\b|\s+[`'\"\w.]+\s*(?:\(|$)|\s*$))",
    re.IGNORECASE,
)


def question_of(text: str) -> str:
    """The question in a text that asks for words and no change, ``""`` for anything else.

    A question mark at the beginning makes a question of every text; it is no part of it.
    """
    text = text.strip()
    if text.startswith("?"):
        return text.lstrip("? ")
    return text if _QUESTION.match(text) else ""


def removes(text: str, symbol: str) -> bool:
    """Whether a text asks for nothing but that a definition, by its dotted name, is removed."""
    match = _REMOVES.match(text)
    if match is None or not symbol:
        return False
    name = re.split(r"\.|::|#", match["name"])
    return symbol.split(".")[-len(name) :] == name


def wish_of(text: str) -> str:
    """What a text that begins with ``plan:`` wants a plan for; ``""`` for any other text."""
    match = _PLAN.fullmatch(text)
    return match["wish"].strip() if match else ""


def asks_beyond_edits(text: str) -> bool:
    """Whether it depends on the model what becomes of a sentence."""
    new_code = _NEW_CODE.match(text) is not None or find_new_code(text) is not None
    return bool(question_of(text)) or new_code


def check_answers(model: ModelInfo) -> None:
    """Refuse a question to a model that answers none.

    Raises:
        NotAnEditError: It says what does.
    """
    if model.is_edit_model:
        problem = "This model answers no questions and makes no plans"
        raise NotAnEditError(problem, "models", "chooses another", _OTHER_MODEL)


def check_is_edit(text: str, model: ModelInfo | None = None) -> None:
    """Refuse a sentence that asks for something that is not an edit.

    Args:
        text: The sentence.
        model: The model; without one, only what no model could do is refused.

    Raises:
        NotAnEditError: It says what does it instead.
    """
    for kind in _COMMANDS:
        if kind.pattern.match(text):
            raise NotAnEditError(kind.problem, kind.action, kind.does, kind.remedy)
    if model is None:
        return
    if question_of(text):
        check_answers(model)
        raise NotAnEditError(
            "This is a question, and only changes can be requested here",
            remedy="ask it on the screen or in plain mode",
        )
    if not model.is_edit_model:
        return
    if (found := _NEW_CODE.match(text)) is not None:
        what = (
            "tests" if found["tests"] else "new files" if found["file"] else "functions of its own"
        )
        problem = f"This model rewrites the lines it is given and cannot write {what}"
        raise NotAnEditError(problem, "models", _CHOOSES, _OTHER_MODEL)
