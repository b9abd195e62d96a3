"""``bench list``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from watcher.cli.options import JsonOption
from watcher.cli.output import CONSOLE, print_json
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from benchmarks.pages.guide import list_sections
    from benchmarks.scenario import Scenario
    from benchmarks.scenarios import SCENARIOS, find_scenario

EXTRAS = ("bench",)


def command(
    name: Annotated[
        str | None, typer.Argument(metavar="SCENARIO", help="Show all its settings.")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Show the scenarios, or the settings of one with their values."""
    if json_output:
        chosen = [find_scenario(name)] if name is not None else list(SCENARIOS.values())
        print_json([describe_scenario(each, settings=name is not None) for each in chosen])
        return
    if name is not None:
        print_guide(find_scenario(name))
        return
    table = Table("scenario", "what", "short set")
    for each in SCENARIOS.values():
        in_set = each.short is not None and each.in_short_set
        table.add_row(each.name, each.summary, "yes" if in_set else "")
    CONSOLE.print(table)
    CONSOLE.print("To see what a scenario can set: spanner-watcher bench list SCENARIO")


def describe_scenario(chosen: Scenario, *, settings: bool) -> dict[str, object]:
    """A scenario for machines, with its settings where one was asked for."""
    described: dict[str, object] = {"name": chosen.name, "summary": chosen.summary}
    if settings:
        rows = [row for each in list_sections(chosen) for row in each.rows]
        described["settings"] = {row.name: row.value for row in rows}
    return described


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
