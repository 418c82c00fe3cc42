"""The child process of ``second_opinion``: reads Python texts, writes what bandit finds in them.

One line of JSON each way per text.  A process of its own, because bandit takes a second to import
and some twenty milliseconds a file, which must not delay a stream.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import sys
from typing import Any

from midstream.scratch import scratch_folder


def main() -> None:
    """Answer until standard input ends."""
    config: Any = importlib.import_module("bandit.core.config")
    manager: Any = importlib.import_module("bandit.core.manager")
    logging.disable()
    settings = config.BanditConfig()
    with scratch_folder() as folder:
        path = folder / "module.py"
        for request in sys.stdin:
            path.write_text(json.loads(request), encoding="utf-8")
            review = manager.BanditManager(settings, "file")
            review.files_list = [str(path)]
            with contextlib.redirect_stdout(io.StringIO()):
                review.run_tests()
            found = [[issue.test_id, issue.text, issue.lineno] for issue in review.results]
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
