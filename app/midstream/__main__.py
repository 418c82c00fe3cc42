"""``python -m midstream``."""

import os
import sys

# Python puts the folder it is started in first: a project's own ``watchfiles/`` or ``textual.py``
# would be run in place of the library.
if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):  # noqa: PTH109
    del sys.path[0]

from midstream.cli import main

sys.exit(main())
