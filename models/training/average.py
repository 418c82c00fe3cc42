"""Average the weights of two checkpoints of one lineage, as a run folder that `export` reads."""

# pyright: reportMissingImports=false
# (torch belongs to the `train` extra only)
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch


def averaged(before: dict[str, Any], after: dict[str, Any], share: float) -> dict[str, Any]:
    """Return the state of the later checkpoint with mixed weights and without optimisers.

    Args:
        before: what `train` saved earlier.
        after: what it saved later; tokens and seconds are its.
        share: how much the later weights count, 0 to 1.

    Raises:
        ValueError: the checkpoints are not of one shape.
    """
    old, new = before["weights"], after["weights"]
    if {name: part.shape for name, part in old.items()} != {
        name: part.shape for name, part in new.items()
    }:
        raise ValueError("The checkpoints are of models of different shapes.")
    mixed = {name: (1 - share) * old[name] + share * part for name, part in new.items()}
    kept = {key: after[key] for key in ("progress", "tokens", "seconds")}
    return {"weights": mixed, **kept}


def main() -> None:
    """Write `last.pt` and `config.json` of the averaged run."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("before", type=Path, help="last.pt of the earlier run")
    parser.add_argument("run", type=Path, help="folder of the later run")
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--share", type=float, default=0.6, help="how much the later run counts")
    arguments = parser.parse_args()
    before, after = (
        torch.load(path, map_location="cpu")
        for path in (arguments.before, arguments.run / "last.pt")
    )
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    torch.save(averaged(before, after, arguments.share), out / "last.pt")
    config = json.loads((arguments.run / "config.json").read_text())
    (out / "config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    main()
