"""Midstream: a terminal pair programmer whose hunks are reviewed while they stream."""

import os

__version__ = "0.1.0"

# ONNX Runtime reads this while it is loaded: otherwise it keeps events (with the program's path and
# the texts of errors) in ~/.cache and sends them to its maker.  Nothing leaves the machine unasked.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
