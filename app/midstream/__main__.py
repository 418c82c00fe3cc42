"""``python -m midstream``."""

import sys

from midstream.cli import main

sys.exit(main())
