"""Recorded turns of real agents: ``tests/agents/traces``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TRACES = Path(__file__).parents[1] / "agents" / "traces"


def frames(name: str, root: str = "/p") -> list[dict[str, Any]]:
    """The messages of a turn; ``root`` is the folder that the agent worked in."""
    text = (TRACES / f"{name}.jsonl").read_text("utf-8").replace("/p/", f"{root}/")
    return [json.loads(line) for line in text.splitlines()]
