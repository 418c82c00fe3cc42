"""Rewrites as they are judged, from little more than their texts."""

from __future__ import annotations

from dataclasses import replace

from midstream.edits.doubt.rewrite import JudgedRewrite
from midstream.pairing.request.mentions import find_mentions


def rewrite(
    asked: str, before: str, after: str, known: str = "", path: str = "a.py"
) -> JudgedRewrite:
    """A rewrite of lines of a file, which has no others where ``known`` does not say so."""
    file, old = (text.splitlines() for text in (known or before, before))
    start = next((n for n in range(len(file)) if file[n : n + len(old)] == old), 0)
    names = [mention.name for mention in find_mentions(asked).sure if not mention.fresh]
    stop = start + len(old)
    made = JudgedRewrite(asked, before, after, path, file, start, stop, after.splitlines(), asked)
    return replace(made, names=names)
