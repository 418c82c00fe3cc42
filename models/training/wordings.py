"""How people ask, as text: `texts/wordings.txt`.

A block begins with ``%%SORT KEY`` and has one wording a line. Sorts are

- ``known``: written-out families of a kind of edit, for training and for the set "known";
- ``new``: families that are kept for the set "new";
- ``free``, ``sentence``, ``described``: a grammar of free phrasings, whole sentences, and ways to
  name a parameter by its place;
- ``word``: what ``<word>`` of a wording stands for;
- ``reason``, ``opening``, ``ending``: what is put around a request;
- ``beyond``, ``both``, ``advice``: requests that are no edit, two edits in one, and what the guard
  advises;
- ``outside``, ``reworded``: requests that no edit covers and words around a request, for fitting
  confidence;
- ``type``, ``condition``, ``comparison``, ``instance``, ``value``: how people say these.

In a wording `(a|b)` chooses, `[x]` is optional, `<word>` takes a word and `{name}` is filled in.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

TEXTS: Final = Path(__file__).with_name("texts")

Table = dict[str, list[str]]


def _read(path: Path) -> dict[str, Table]:
    found: dict[str, Table] = {}
    for block in re.split(r"^%%", path.read_text("utf-8"), flags=re.M)[1:]:
        head, *lines = block.rstrip("\n").split("\n")
        sort, _, key = head.partition(" ")
        found.setdefault(sort, {})[key] = lines
    return found


_SORTS: Final = _read(TEXTS / "wordings.txt")


def table(sort: str) -> Table:
    """Return the wordings of a sort by their key."""
    return _SORTS[sort]
