"""How a command prints what is not its result: the options that every command has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Annotated, Any

import typer
import typer.main

QUIET, JSON_ERRORS, VERBOSE = ("--quiet", "-q"), "--json-errors", ("--verbose", "-v")


@dataclass(slots=True)
class OutputMode:
    """``quiet``: nothing but results and errors. ``json_errors``: errors as JSON. ``verbose``: the
    traceback of what is a fault of the program."""

    quiet: bool = False
    json_errors: bool = False
    verbose: bool = False

    def read(self, arguments: Sequence[str]) -> None:
        """Takes what a command line asks for: before it is parsed, as it may be wrong."""
        given = set(takewhile(lambda each: each != "--", arguments))
        self.quiet = not given.isdisjoint(QUIET)
        self.json_errors = JSON_ERRORS in given
        self.verbose = not given.isdisjoint(VERBOSE)


MODE = OutputMode()
"""That of this process, which runs one command."""


def declare_common_options(
    quiet: Annotated[bool, typer.Option(*QUIET, help="Print results and errors alone.")] = False,
    json_errors: Annotated[
        bool, typer.Option(JSON_ERRORS, help="Print errors as JSON: kind, message, exit code.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option(*VERBOSE, help="Print the traceback of a fault of the program.")
    ] = False,
) -> None:
    """The options that every command has; ``OutputMode.read`` looks for them."""


@cache
def list_common_options() -> tuple[Any, ...]:
    """These options, as a command takes them; their values are not handed to it."""
    app = typer.Typer(add_completion=False)
    app.command()(declare_common_options)
    params = tuple(typer.main.get_command(app).params)
    for each in params:
        each.expose_value = False
    return params
