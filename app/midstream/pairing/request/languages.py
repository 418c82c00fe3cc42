"""Languages of files, and the refusal of a file that the model was not made for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from midstream.errors import UserError

if TYPE_CHECKING:
    from midstream.edits.documents import SourceText
    from midstream.responses.model_info import ModelInfo


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
