"""Corrections by the guard, put so that a small edit model can follow them.

The guard stops a line while it is written, asked for as ``add `os.system(cmd)` at the top``, and
has it written again: ``Use subprocess.run with a list of arguments.`` A model that treats quoted
code as one opaque piece cannot rewrite it. So the line is inserted into the region, where the
rewrite has got to, and only the advice is asked for. What is generated is the same: the lines
after those kept.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from midstream.engine.codec_lines import align, split_lines

if TYPE_CHECKING:
    from midstream.engine.codec import EditRequest

_QUOTED = re.compile(r"`([^`\n]+)`")


def corrected_request(request: EditRequest, most_lines: int) -> EditRequest:
    """Return a request for a safe line where the guard has stopped an unsafe one.

    A request without a correction is returned as it is. Where the instruction quotes no code, or
    the region would get more than `most_lines`, the line that the rewrite has got to is corrected.
    """
    if request.correction is None:
        return request
    asked, advice = request.correction.asked, request.correction.correction.advice
    quoted = max(_QUOTED.findall(asked), key=len, default="")
    lines = split_lines(request.region)
    kept = split_lines(request.kept)
    used = max((k + 1 for k, _ in align(lines, kept, open_end=True) if k is not None), default=0)
    known = any(quoted in line for line in lines)
    if quoted and not known and len(lines) < most_lines:
        lines.insert(used, _indent(kept, lines[used:]) + quoted)
    region = "".join(line + "\n" for line in lines)
    return replace(request, instruction=advice, region=region, earlier=(), correction=None)


def _indent(above: list[str], below: list[str]) -> str:
    """Return the indent that a statement between some lines most likely has."""
    last = next((line for line in reversed(above) if line.strip()), "")
    after = next((line for line in below if line.strip()), "")
    lead = last[: len(last) - len(last.lstrip())]
    if last.rstrip().endswith(":"):
        lead += "    "
    lower = after[: len(after) - len(after.lstrip())]
    # Between a deeper line and a shallower one it is the shallower one's neighbour.
    return lower if after and len(lower) < len(lead) else lead
