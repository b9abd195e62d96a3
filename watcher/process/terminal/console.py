"""Consoles that never change data: no markup, and no width where there is no terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from watcher.model.errors import OutputClosedError, OutputWriteError
from watcher.process.terminal.mode import MODE

UNLIMITED = 1_000_000
"""The width, in characters, of what is not a terminal: pipes and files wrap nothing."""


KEPT = "\t\n"
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in KEPT} | {127: 0x2421}
OTHERS = (*range(0x80, 0xA0), 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
SHOWN = PICTURES | dict.fromkeys(OTHERS, 0xFFFD)
"""Characters that command a terminal or turn text around, and what is printed in their place."""


def show_controls(text: str) -> str:
    """A text in which nothing commands a terminal: names come from databases, where others choose
    them."""
    return text.translate(SHOWN)


class TextConsole(Console):
    """Prints text as it is: brackets are no markup, and lines are wrapped by the terminal alone."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)
        if not self.is_terminal:
            self.width = UNLIMITED

    def print(self, *objects: Any, **options: Any) -> None:
        """As ``Console.print``; text is one line, however long. What stands beside the output is
        left out with --quiet."""
        if self.stderr and MODE.quiet:
            return
        if all(isinstance(each, str | Text) for each in objects):
            options.setdefault("soft_wrap", True)
        super().print(*objects, **options)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """All that is printed passes here; rich's own commands are marked."""
        return super()._render_buffer(
            each if each.control else each._replace(text=show_controls(each.text))
            for each in buffer
        )

    def on_broken_pipe(self) -> None:
        """Raises OutputClosedError: nobody reads the output any more."""
        raise OutputClosedError


class ErrorConsole(TextConsole):
    """The standard error, for what --quiet does not leave out."""

    def __init__(self) -> None:
        super().__init__(stderr=True)

    def print(self, *objects: Any, **options: Any) -> None:
        """As ``Console.print``."""
        Console.print(self, *objects, soft_wrap=True, **options)


def label(text: str, style: str, rest: str) -> Text:
    """A styled word and the text after it, which is printed as it is."""
    return Text.assemble((text, style), rest)


def print_error(message: str, kind: str = "WatcherError", exit_code: int = 1) -> None:
    """Prints an error on the standard error; one without words gets some. With --json-errors as
    JSON. Where that cannot be written, as on a full disk, the exit code alone says it."""
    sentence = make_line(message) or NO_WORDS
    error = {"kind": kind, "message": show_controls(sentence), "exit_code": exit_code}
    try:
        if MODE.json_errors:
            sys.stderr.write(json.dumps({"error": error}, ensure_ascii=False) + "\n")
            sys.stderr.flush()
        else:
            ErrorConsole().print(label("error:", "bold red", f" {sentence}"))
    except OSError:
        silence(sys.stderr)


WORD_MAX = 300
"""Longer words are values that somebody has given; the sentence around them must stay readable."""


def make_line(message: str) -> str:
    """A message as one line. The middle of a very long word is left out."""
    lines = (line.strip() for line in message.strip().splitlines())
    words = " ".join(line for line in lines if line).split(" ")
    return " ".join(map(shorten_word, words))


def shorten_word(word: str) -> str:
    """A word, or how it begins and ends."""
    if len(word) <= WORD_MAX:
        return word
    kept = WORD_MAX // 3
    return f"{word[:kept]}...({len(word) - 2 * kept:,} more)...{word[-kept:]}"


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
    """Writes what is buffered. Raises as ``explain_output`` does."""
    with explain_output():
        sys.stdout.flush()


def drop_output() -> None:
    """Writes what is buffered, or drops it where that fails: the error is reported already."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        silence(sys.stdout)


@contextmanager
def explain_output() -> Iterator[None]:
    """Raises OutputClosedError when nobody reads the standard output any more, and OutputWriteError
    when it cannot be written: behind a part of a line nothing can be written again, so that the
    command has to end."""
    try:
        yield
    except BrokenPipeError as error:
        raise OutputClosedError from error
    except OSError as error:
        raise make_output_error(error) from error


def make_output_error(error: OSError) -> OutputWriteError:
    """Why the standard output cannot be written."""
    return OutputWriteError(
        f"cannot write to the standard output: {error.strerror or type(error).__name__}; its last"
        " line may not be whole: free some space, and run the command again"
    )
