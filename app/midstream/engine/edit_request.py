"""The request to an edit model, and how a person's wording is normalised for it.

Two rewrites of an instruction: without the phrase that only says where (``without_locator``), and,
where the guard corrects a line, as a request about the line itself (``corrected_request``).  What
is carried of several instructions is said in ``midstream.edits.request``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from midstream.edits.request import carried
from midstream.engine.layout import align, split_lines

if TYPE_CHECKING:
    from midstream.guard.correction import CorrectionRequest


@dataclass(frozen=True, slots=True)
class EditRequest:
    """A rewrite that a model is asked for.

    Attributes:
        instruction: What to do, in words.
        region: The source text of the region: whole lines, each ended by a newline.
        kept: Whole lines of the rewrite that are written and stay (stop, redirect).
        earlier: Instructions under which ``kept`` was written; see ``carried``.
        correction: What ``instruction`` asks for, where the guard wrote it.
        language: Name of the region's programming language, "" where it is not known.
    """

    instruction: str
    region: str
    kept: str = ""
    earlier: tuple[str, ...] = ()
    correction: CorrectionRequest | None = None
    language: str = ""

    @property
    def asked(self) -> str:
        """The one instruction that stands for all instructions so far."""
        return carried((*self.earlier, self.instruction)).instruction


_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_PHRASE = (
    r"\s*,?\s*\b(?i:in|inside|within|to|of|for|from|on|at)\s+(?:the\s+)?"
    r"(?:(?:function|method|class|definition|signature)(?:\s+of)?\s+)*"
    r"(?P<quote>[`'\"]?)(?:\w+\.)*{name}(?:\(\))?(?P=quote)(?:\s+(?:function|method|class)\b)?"
    r"(?=\s|$|[,.;:?!])"
)
_HEAD = r"^\s*(?P<quote>[`'\"]?)(?:\w+\.)*{name}(?:\(\))?(?P=quote)\s*:\s"
_ENDS = re.compile(r"^[\s,:]+|[\s,]+$")


def without_locator(instruction: str, region: str) -> str:
    """Return an instruction without the phrases that only name the function or class meant."""
    first = _DEFINITION.search(region)
    if first is None:
        return instruction
    name, shorter = re.escape(first.group(1)), instruction
    for phrase in (_HEAD, _PHRASE):
        shorter = _ENDS.sub("", re.sub(phrase.replace("{name}", name), "", shorter))
    return shorter or instruction


_QUOTED = re.compile(r"`([^`\n]+)`")


def corrected_request(request: EditRequest) -> EditRequest:
    """Return a request for a safe line where the guard has stopped an unsafe one.

    A request without a correction is returned as it is. Where the instruction quotes no code, the
    line that the rewrite has got to is corrected.
    """
    if request.correction is None:
        return request
    asked, advice = request.correction.asked, request.correction.correction.advice
    quoted = max(_QUOTED.findall(asked), key=len, default="")
    lines = split_lines(request.region)
    kept = split_lines(request.kept)
    used = max((k + 1 for k, _ in align(lines, kept) if k is not None), default=0)
    known = any(quoted in line for line in lines)
    if quoted and not known:
        lines.insert(used, _indent(kept, lines[used:]) + quoted)
    region = "".join(line + "\n" for line in lines)
    return replace(request, instruction=advice, region=region, earlier=(), correction=None)


def _indent(above: list[str], below: list[str]) -> str:
    """The most likely indent of a statement between these lines."""
    last = next((line for line in reversed(above) if line.strip()), "")
    after = next((line for line in below if line.strip()), "")
    lead = last[: len(last) - len(last.lstrip())]
    if last.rstrip().endswith(":"):
        lead += "    "
    lower = after[: len(after) - len(after.lstrip())]
    # Between a deeper line and a shallower one it is the shallower one's neighbour.
    return lower if after and len(lower) < len(lead) else lead
