"""``python -m midstream``, and the start of the ``midstream`` command."""

import gc
import os
import sys


def main() -> int:
    """Run the program; returns its exit code."""
    try:
        return _run()
    except KeyboardInterrupt:  # Ctrl+C while it is still being imported; later, `cli` has it.
        sys.stderr.write("midstream: stopped.\n")
        return 130


def _run() -> int:
    if sys.argv[1:] == ["hook"] and not os.isatty(0):  # an agent waits for it before every edit
        from midstream.agents.hook_client import main as answer_hook

        if os.getpid() == 1:
            from midstream.processes import end_by_signals

            end_by_signals()
        return answer_hook()
    from midstream.cli import main as run_command

    try:
        return run_command()
    finally:
        # Else Python looks through every object once more before it ends: a fifth of a short run.
        gc.freeze()


if __name__ == "__main__":
    # Python puts the folder it is started in first: a project's own ``watchfiles/`` or
    # ``textual.py`` would be run in place of the library.
    if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):  # noqa: PTH109
        del sys.path[0]
    sys.exit(main())
