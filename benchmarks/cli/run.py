"""``bench run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.options import JsonOption
from watcher.cli.output import CONSOLE, ERRORS, print_json
from watcher.process.terminal.loading import to_run
from watcher.process.terminal.values import to_folder

if to_run(__name__):
    from benchmarks.cli.results import write_report
    from benchmarks.conduct import check_settings, conduct
    from benchmarks.scenario import Scenario
    from benchmarks.scenarios import SCENARIOS, find_scenario
    from benchmarks.screen import Screen, print_result

EXTRAS = ("bench",)
EMBEDDED = "embedded"


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="SCENARIO", help="See 'bench list'.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting; repeatable.")
    ] = None,
    database: Annotated[
        str,
        typer.Option(
            "--database",
            "-d",
            metavar="ADDRESS",
            help="An existing database, in which tables Bench... are created and dropped, or"
            " 'embedded': a new embedded Spanner for every run.",
        ),
    ] = EMBEDDED,
    short: Annotated[
        bool,
        typer.Option("--short", help="Run the short set, or the short form of these scenarios."),
    ] = False,
    out: Annotated[
        Path,
        typer.Option(
            callback=to_folder,
            metavar="DIRECTORY",
            help="Write results (JSON) and report.html into this directory.",
        ),
    ] = Path("bench-results"),
    json_output: JsonOption = False,
) -> None:
    """Run scenarios, and verify every delivered row.

    Exits with 1 when a row was lost, invented or doubled, or a run failed.

    A setting is named by its last part (interval) or by more of it (consumer.interval); lists have
    commas between; a later --set replaces an earlier one. `bench list SCENARIO` shows all of them.

    \b
      bench run backlog --set sizes=100000,1000000
      bench run captures --set captures=poll,push --set transactions=100 --set seconds=60
      bench run latency --set keys=zipf --set inserts=0.1 --set dml=true --set writers=4
      bench run clearing --set strategy=processed --out processed
      bench run sustained --set profile=ramp --set until=400 --set late_max=1
      bench run latency -d spanner://projects/P/instances/I/databases/D

    With --database, tables Bench... are made in it, filled, and dropped at the end: take a database
    that nobody else uses, and mind what it costs.
    """
    address = None if database == EMBEDDED else database.removeprefix("spanner://")
    chosen = [find_scenario(name) for name in names or ()]
    if short and not chosen:
        chosen = short_set(embedded=address is None)
    if not chosen:
        raise typer.BadParameter("name a scenario (see `bench list`), or use --short")
    plans = [(each, [*(each.short or () if short else ()), *(settings or ())]) for each in chosen]
    for each, overrides in plans:
        check_settings(each, overrides, address)
    results = []
    for each, overrides in plans:
        with Screen(ERRORS if json_output else CONSOLE) as screen:
            result = conduct(each, overrides, address, screen)
        if json_output:
            print_json(result.model_dump(mode="json"))
        else:
            print_result(CONSOLE, result)
        result.save(out)
        results.append(result)
    write_report(results, out / "report.html", json_output)
    raise typer.Exit(0 if all(result.passed for result in results) else 1)


def short_set(embedded: bool) -> list[Scenario]:
    """The scenarios of the short set; on another database without those of the embedded server."""
    known = [each for each in SCENARIOS.values() if each.short is not None and each.in_short_set]
    return [each for each in known if embedded or not each.own_server]
