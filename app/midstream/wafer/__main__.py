"""``python -m midstream.wafer``: the simulator without the rest of Midstream."""

from midstream.wafer.commands import main

raise SystemExit(main())
