"""The command-line parser, whose errors are ``UsageError``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NoReturn

from midstream.errors import UsageError


class CommandParser(argparse.ArgumentParser):
    """A parser that raises instead of exiting, and whose help is plain text."""

    def format_help(self) -> str:
        """The help; a description taken from a docstring loses its code marks."""
        if self.description is not None:
            self.description = self.description.replace("``", "")
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Refuse a command line.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f"{message[:1].upper()}{message[1:]}; see `{self.prog} --help`.")


def whole(least: int) -> Callable[[str], int]:
    """The type of an option for whole numbers from ``least`` up."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return read
