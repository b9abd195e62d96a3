"""``bench list``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from watcher.cli.output import CONSOLE
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from benchmarks.guide import list_sections
    from benchmarks.scenario import Scenario
    from benchmarks.scenarios import SCENARIOS, find_scenario

EXTRAS = ("bench",)


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="SCENARIO", help="Show all its settings.")
    ] = None,
) -> None:
    """Show the scenarios, or the settings of one with their values."""
    if name is not None:
        print_guide(find_scenario(name))
        return
    table = Table("scenario", "what", "short set")
    for each in SCENARIOS.values():
        in_set = each.short is not None and each.in_short_set
        table.add_row(each.name, each.summary, "yes" if in_set else "")
    CONSOLE.print(table)
    CONSOLE.print("To see what a scenario can set: spanner-watcher bench list SCENARIO")


def print_guide(chosen: Scenario) -> None:
    """Everything that can be set, section by section."""
    CONSOLE.print(f"{chosen.name}: {chosen.summary}", style="bold")
    for each in list_sections(chosen):
        CONSOLE.print(f"\n{each.title}", style="bold")
        CONSOLE.print(each.text)
        table = Table("setting", "value", "choices")
        for row in each.rows:
            table.add_row(Text(row.name), Text(row.value), Text(row.choices))
        if each.rows:
            CONSOLE.print(table)
    short = [f" --set {override}" for override in chosen.short or ()]
    if short:
        CONSOLE.print(f"\n--short is{''.join(short)}")
    example = f"spanner-watcher bench run {chosen.name}{''.join(short[:1])}"
    CONSOLE.print(f"\n{example}")
