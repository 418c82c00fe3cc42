"""What is sent to the model: the region, what stands around it, and how the answer is to look.

Also knows which language a file is in, because a model may be made for some only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from midstream.errors import UserError
from midstream.guard.secrets import mask

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.edits.hunks import Hunk
    from midstream.responses.model_info import ModelInfo

LINES_BEFORE = 60
"""Lines above the region that go along as context."""
LINES_AFTER = 30
"""Lines below the region that go along as context."""
MOST_REJECTIONS = 8
"""Rejected hunks that a request tells of."""
MOST_REJECTED_LINES = 24
"""Lines of each of them."""

REGION_INSTRUCTIONS = """\
You rewrite one region of a source file. The user message holds the instruction, the lines around
the region for orientation, and the region itself. Answer with the complete new text of the region
and nothing else, between <region> and </region>: every line that should stay, unchanged and with
its indentation, and every line that should change, changed. Do not repeat the lines around the
region, do not use a code fence, do not explain. If an earlier answer of yours was cut off and a
further instruction follows, answer again between <region> and </region>, but only with the lines
that come behind the last line of that answer; never repeat what it holds.
"""
"""System text for chat models; an edit model was trained to do this and is not told."""


class WrongLanguageError(UserError):
    """The model is not made for the language of the file.

    Args:
        what: What it edits, and what the file is.
    """

    code = "wrong-language"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; choose another model with --model or --endpoint.")
        self.what = what


_LANGUAGES: Mapping[str, str] = {
    ".c": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".css": "css",
    ".go": "go",
    ".h": "c",
    ".hpp": "cpp",
    ".html": "html",
    ".java": "java",
    ".js": "javascript",
    ".json": "json",
    ".jsx": "javascript",
    ".kt": "kotlin",
    ".lua": "lua",
    ".md": "markdown",
    ".php": "php",
    ".py": "python",
    ".pyi": "python",
    ".pyw": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".rst": "rst",
    ".sh": "bash",
    ".sql": "sql",
    ".swift": "swift",
    ".toml": "toml",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".txt": "text",
    ".yaml": "yaml",
    ".yml": "yaml",
}


def language_of(path: str, first_line: str = "") -> str:
    """Name of the language of a file by its suffix or its ``#!`` line, or ``""``."""
    known = _LANGUAGES.get(PurePosixPath(path).suffix.lower(), "")
    if not known and first_line.startswith("#!") and "python" in first_line:
        return "python"
    return known


def check_language(path: str, text: SourceText, model: ModelInfo) -> None:
    """Refuse a file in a language which the model does not know.

    Raises:
        WrongLanguageError: The model names its languages and this file's is not among them.
    """
    language = language_of(path, text.lines[0] if text.lines else "")
    if model.languages and language not in model.languages:
        what = f"is {language}" if language else "is in no language it knows"
        raise WrongLanguageError(
            f"This model edits {' and '.join(model.languages)} only, and {path} {what}"
        )


def with_rejections(instruction: str, rejected: Sequence[Hunk], model: ModelInfo) -> str:
    """An instruction that also says which changes the person turned down, and why.

    An edit model is given the instruction alone: it was trained on nothing else, and the region it
    gets holds no rejected line.

    Args:
        instruction: What the person asks for.
        rejected: Rejected hunks of the file, oldest first; of many, the last ones are told.
        model: The model that is asked.
    """
    if not rejected or not model.is_chat:
        return instruction
    parts = [instruction, "", "Changes to this file that were turned down; do not make them again:"]
    for hunk in rejected[-MOST_REJECTIONS:]:
        reason = " ".join(hunk.note.split())
        parts.append(f"* turned down because: {reason}" if reason else "* turned down:")
        parts += rejected_lines(hunk)
    return "\n".join(parts)


def rejected_lines(hunk: Hunk) -> list[str]:
    """The lines of a rejected hunk as a model is told them: indented, without credentials."""
    lines = [
        *(f"    - {line}" for line in hunk.old),
        *(f"    + {mask(line)}" for line in hunk.new),
    ]
    more = len(lines) - MOST_REJECTED_LINES
    return lines if more <= 0 else [*lines[:-more], f"    ({more} more lines)"]


def region_message(
    path: str, text: SourceText, start: int, stop: int, region: str, instruction: str
) -> str:
    """The user message that asks for a rewrite.

    Args:
        path: The file, relative to the root.
        text: The base text.
        start: First base line of the region.
        stop: End of the region, exclusive.
        region: The region's text as it is proposed now (undecided hunks included).
        instruction: What the person asks for.
    """
    from midstream.edits.request import RegionRequest, render_request

    return render_request(
        RegionRequest(
            instruction=instruction,
            region=region,
            path=path,
            language=language_of(path, text.lines[0] if text.lines else ""),
            before=text.text(max(0, start - LINES_BEFORE), start),
            after=text.text(stop, min(len(text.lines), stop + LINES_AFTER)),
        )
    )
