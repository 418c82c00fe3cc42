"""Tell an agent the state of the review of its changes, as a Model Context Protocol server.

The agent starts it in its own folder and calls two tools: review_status, and wait_for_review, which
returns when every change is decided. ``claude mcp add midstream -- midstream mcp`` sets it up
there.
"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments; there are none."""


def run(options: argparse.Namespace) -> int:
    """Serve on standard input and output until they end; returns the exit code."""
    from midstream.agents.mcp_server import main

    return main()
