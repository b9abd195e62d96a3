"""The page of commands and their options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main

from reference_pages.markdown import code, format_prose, make_page, make_table, require_text
from watcher.cli import app

PROGRAM = "spanner-watcher"
VERBATIM = "\b"
"""click: a paragraph that begins with this keeps its lines."""


def iterate_commands(name: str = PROGRAM, command: Any = None) -> Iterator[tuple[str, Any]]:
    """Every command by its whole name, a group before its commands."""
    command = typer.main.get_command(app) if command is None else command
    yield name, command
    for inner, each in getattr(command, "commands", {}).items():
        yield from iterate_commands(f"{name} {inner}", each)


def list_parameters(name: str, command: Any) -> Iterator[tuple[str, str]]:
    """Each argument and option, and its meaning. Raises MissingDescriptionError."""
    context = command.make_context(name, [], resilient_parsing=True)
    for each in command.params:
        record = each.get_help_record(context)
        if record is None:
            continue
        what = record[0]
        if each.param_type_name == "argument":
            what = what.partition(" ")[0]
        require_text(each.help, f"{name} {what}", "the file of the command")
        yield code(what), format_prose(" ".join(record[1].split()))


def describe_help(text: str | None, name: str) -> Iterator[str]:
    """The help of a command, as lines. Raises MissingDescriptionError."""
    require_text(text, name, "the docstring of its function")
    for paragraph in (text or "").split("\n\n"):
        if VERBATIM in paragraph:
            lines = [line for line in paragraph.replace(VERBATIM, "").splitlines() if line.strip()]
            yield from ("```text", *(line.rstrip() for line in lines), "```", "")
        elif paragraph.strip():
            yield from (format_prose(" ".join(paragraph.split())), "")


def describe_command(name: str, command: Any) -> Iterator[str]:
    """The section of a command."""
    yield from (f"## `{name}`", "")
    yield from describe_help(command.help, name)
    rows = list(list_parameters(name, command))
    if rows:
        yield from make_table(("option", "meaning"), rows)


def make_commands_page() -> str:
    """docs/reference/commands.md. Raises MissingDescriptionError."""
    sections = [line for each in iterate_commands() for line in describe_command(*each)]
    return make_page(
        "Commands",
        "What `--help` says, on one page. [Exit codes](../exit-codes.md) are the same in every"
        " command; [permissions](../permissions.md) says what each one needs.",
        "",
        *sections,
    )
