"""Random streams through a guarded session: it ends, and nothing dangerous can be written."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from midstream.edits.hunks import HunkState
from midstream.pairing.guard import LightState
from midstream.pairing.request.question import Question
from midstream.pairing.session import PairingSession
from midstream.responses.endpoint import Endpoint
from midstream.settings import Settings
from tests.helpers.pairing import Witness
from tests.helpers.stepped import SteppedModel

BEFORE = (
    "import os\n\n\ndef f(x):\n"
    + "".join(f"    a{n} = {n}\n" for n in range(20))
    + "    return x\n"
)
REGION = BEFORE[BEFORE.index("def f") :].splitlines(keepends=True)
BAD = (
    "    os.system(x)\n",
    "    eval(\n        x,\n    )\n",
    '    k = "AKIA' + 'QX7ZL2MWPNV4RT6B"\n',
)


@pytest.mark.parametrize("seed", [*range(11), 143])
async def test_random_answers(
    tmp_path: Path, endpoint: Endpoint, model: SteppedModel, seed: int
) -> None:
    rng = random.Random(seed)
    (tmp_path / "m.py").write_text(BEFORE)
    settings = Settings(journal=False)
    opened = await PairingSession.open(tmp_path, settings=settings, endpoint=endpoint, watch=False)
    async with opened as session:
        witness = Witness(session)
        served = 0

        def answer() -> None:
            """What the model writes when asked once more: a mix of old, new and bad lines."""
            lines = REGION if served == 1 else REGION[rng.randrange(1, 20) :]
            for line in lines:
                kind = 1.0 if line == REGION[0] else rng.random()
                if kind < 0.15:
                    model.give(f"    b{rng.randrange(100)} = 1\n")
                elif kind < 0.22:
                    model.give(rng.choice(BAD))
                elif kind < 0.3:
                    continue
                model.give(line)
            model.end()

        def all_answered() -> bool:
            nonlocal served
            if len(model.requests) > served:
                served = len(model.requests)
                model.drop()
                answer()
            return False

        model.drop()
        await session.turns.instruct(Question("do it in f", path="m.py", cursor=4))
        ended = asyncio.create_task(session.turns.finished())
        await witness.until(lambda: all_answered() or ended.done())
        assert session.guard.light("m.py").state is LightState.GUARDED
        assert len(model.requests) <= 7
        text = "".join(line + "\n" for h in session.hunks.undecided() for line in h.new)
        assert not any(bad in text for bad in BAD)
        await session.decisions.accept_rest("m.py")
        written = (tmp_path / "m.py").read_text()
        assert not any(bad in written for bad in BAD)
        held = [h for h in session.hunks if h.state is HunkState.HELD]
        assert all(h.note for h in held)
