"""The embedded model server dies while somebody works on the screen."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from midstream.settings import Settings
from midstream.tui.app import MidstreamApp
from tests.helpers.stage import ready

pytestmark = pytest.mark.system


async def test_a_dead_model_server_is_started_again_by_enter(project: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    edit = ["    return number * 2\n", "    return number + number\n"]
    slow = {"match": "slowly", "edit": [edit], "rate": 20}
    script.write_text(json.dumps([slow]))
    app = MidstreamApp(project, Settings(journal=False, attention=False), replay=script)
    async with ready(app) as stage:
        await stage.open("pkg/things.py")
        await stage.press("i")
        stage.composer.put("slowly in double")
        await stage.press("enter")
        await stage.until(lambda: stage.session.status.state == "streaming", "streaming")
        server = stage.session.server.server
        assert server is not None
        assert server.process is not None
        first = server.process.pid
        os.kill(first, signal.SIGKILL)
        await stage.until(lambda: stage.session.status.state == "offline", "offline")
        assert stage.notice.startswith("The connection to the model server was lost")
        assert stage.notice.endswith("; enter starts it again.")
        await stage.press("i", "enter")
        await stage.until(lambda: stage.session.status.state == "streaming", "it writes again")
        assert len(stage.session.turns) == 2
