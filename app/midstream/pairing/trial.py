"""The person's own quick test, run in a throw-away copy of the folder."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from midstream.pairing.verdicts import Lines
    from midstream.workspace.files import Workspace

TESTS_S: Final = 60.0
"""How long the test command may take for one candidate."""
MOST_FILES: Final = 2_000
MOST_BYTES: Final = 50_000_000
"""A folder with more than that is not copied."""


class Trial:
    """A throw-away copy of the folder in which the person's test command runs.

    Attributes:
        trouble: Why it cannot, ``""`` if it can.
    """

    def __init__(self, workspace: Workspace, command: str) -> None:
        self.trouble = ""
        self._command = shlex.split(command)
        self._folder: Path | None = None
        paths = workspace.files()
        size = 0
        if len(paths) > MOST_FILES:
            self.trouble = f"the folder has more than {MOST_FILES:,} files"
            return
        folder = Path(tempfile.mkdtemp(prefix="midstream-trial-"))
        self._folder = folder
        for path in paths:
            source, target = workspace.root / path, folder / path
            with contextlib.suppress(OSError):
                size += source.stat().st_size
                if size > MOST_BYTES:
                    self.trouble = f"the folder has more than {MOST_BYTES // 1_000_000} MB"
                    return
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    @property
    def ready(self) -> bool:
        """Whether the command can run."""
        return not self.trouble and bool(self._command)

    def passes(self, files: Lines) -> bool | None:
        """Whether the command succeeds with these versions of files; ``None`` if it cannot run."""
        if self._folder is None:
            return None
        former: dict[Path, bytes | None] = {}
        try:
            for path, lines in files.items():
                target = self._folder / path
                former[target] = target.read_bytes() if target.is_file() else None
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            return self._run()
        except OSError as error:
            self.trouble = f"the copy of the folder cannot be written ({error.strerror})"
            return None
        finally:
            # The next candidate starts from the folder as it is.
            for target, data in former.items():
                with contextlib.suppress(OSError):
                    if data is None:
                        target.unlink(missing_ok=True)
                    else:
                        target.write_bytes(data)

    def _run(self) -> bool | None:
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                self._command,
                cwd=self._folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TESTS_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        except OSError as error:
            self.trouble = f"{self._command[0]} cannot be started ({error.strerror})"
            return None
        return done.returncode == 0

    def close(self) -> None:
        """Remove the copy."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
