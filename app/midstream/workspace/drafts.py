"""Unsent input, sent instructions and line wrapping, one small file per workspace root.

Losing it loses no work, so an unreadable file counts as empty and a failed write is ignored.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from midstream.resources import MAX_CONFIG_BYTES, read_json
from midstream.workspace import atomic
from midstream.workspace.paths import root_state_dir

MAX_SENT = 100
"""Instructions that are kept."""
MAX_SENT_LENGTH = 4_000
"""Longer instructions, in characters, are not kept."""


@dataclass(slots=True)
class Drafts:
    """Input that survives a session.

    Attributes:
        draft: The unsent text.
        pasted: Pasted blocks in it, which the screen abbreviates.
        sent: Sent instructions, oldest first.
        journals: Name of the journal of the session that each of them was first sent in, where
            that has one.
        wrap: Whether long lines wrap on the screen.
    """

    draft: str = ""
    sent: list[str] = field(default_factory=list[str])
    wrap: bool = False
    pasted: list[str] = field(default_factory=list[str])
    journals: dict[str, str] = field(default_factory=dict[str, str])

    def note(self, text: str, pasted: list[str]) -> bool:
        """Set the unsent text; whether that erased it."""
        erased = bool(self.draft) and not text.strip()
        self.draft, self.pasted = (text, pasted) if text.strip() else ("", [])
        return erased

    def assign(self, journal: Path) -> None:
        """Note the journal of the session that sent what is new."""
        for text in self.sent:
            self.journals.setdefault(text, journal.name)

    def forget(self, journal: Path) -> None:
        """Drop what was sent in the session of a journal."""
        self.sent[:] = [text for text in self.sent if self.journals.get(text) != journal.name]


def read_drafts(state: Path, root: Path) -> Drafts:
    """The kept input of a root (blocking)."""
    try:
        found = read_json(_file(state, root), MAX_CONFIG_BYTES)
    except (OSError, ValueError):
        return Drafts()
    if not isinstance(found, dict):
        return Drafts()
    data = cast("dict[str, Any]", found)
    draft, sent = data.get("draft"), _texts(data.get("sent"))
    known = zip(sent, _texts(data.get("journals")), strict=False)
    return Drafts(
        draft if isinstance(draft, str) else "",
        sent,
        data.get("wrap") is True,
        _texts(data.get("pasted")),
        {text: journal for text, journal in known if journal},
    )


def write_drafts(state: Path, root: Path, drafts: Drafts) -> None:
    """Keep the input of a root (blocking); readable by the user only."""
    kept = [text for text in drafts.sent if len(text) <= MAX_SENT_LENGTH][-MAX_SENT:]
    fields = {
        "draft": drafts.draft,
        "sent": kept,
        "journals": [drafts.journals.get(text, "") for text in kept],
        "wrap": drafts.wrap,
        "pasted": [block for block in drafts.pasted if block in drafts.draft],
    }
    data = json.dumps(fields).encode()
    with contextlib.suppress(OSError):
        atomic.overwrite(_file(state, root), data)


def _texts(value: object) -> list[str]:
    entries = cast("list[object]", value) if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, str)]


def _file(state: Path, root: Path) -> Path:
    return root_state_dir(state, root) / "drafts.json"
