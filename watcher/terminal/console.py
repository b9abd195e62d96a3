"""Consoles that never change data: no markup, and no width where there is no terminal."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from watcher.errors import OutputClosedError

UNLIMITED = 1_000_000
"""The width, in characters, of what is not a terminal: pipes and files wrap nothing."""


class TextConsole(Console):
    """Prints text as it is: brackets are no markup, and lines are wrapped by the terminal alone."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)
        if not self.is_terminal:
            self.width = UNLIMITED

    def print(self, *objects: Any, **options: Any) -> None:
        """As ``Console.print``; text is one line, however long."""
        if all(isinstance(each, str | Text) for each in objects):
            options.setdefault("soft_wrap", True)
        super().print(*objects, **options)

    def on_broken_pipe(self) -> None:
        """Raises OutputClosedError: nobody reads the output any more."""
        raise OutputClosedError


def label(text: str, style: str, rest: str) -> Text:
    """A styled word and the text after it, which is printed as it is."""
    return Text.assemble((text, style), rest)


def print_error(message: str) -> None:
    """Prints an error on the standard error; one without words gets some."""
    TextConsole(stderr=True).print(label("error:", "bold red", f" {message.strip() or NO_WORDS}"))


NO_WORDS = "the cause gave no message: run the command again with --verbose, or see the log"


def silence(stream: TextIO) -> None:
    """Sends what a stream still holds to nowhere: its reader has gone."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, stream.fileno())
    except (OSError, ValueError):
        return  # it has no descriptor, and so no reader who could have gone
    finally:
        os.close(devnull)


def flush_output() -> None:
    """Writes what is buffered. Raises OutputClosedError when nobody reads it any more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise OutputClosedError from error
