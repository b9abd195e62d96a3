"""The command ``spanner-watcher bench``, and ``python -m benchmarks``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.table import Table
from rich.text import Text

from benchmarks.comparison import compare_results, find_different_settings
from benchmarks.conduct import check_settings, conduct
from benchmarks.forecasts import convert_to_json, parse_assumptions, print_model, render_page
from benchmarks.guide import list_sections
from benchmarks.model import (
    Assumptions,
    Setup,
    chart,
    find_fewest_nodes,
    find_fewest_shards,
    forecast,
)
from benchmarks.report import report
from benchmarks.result import ScenarioResult
from benchmarks.scenario import Scenario
from benchmarks.scenarios import SCENARIOS, find_scenario
from benchmarks.screen import Screen, print_busy, print_comparison, print_result, shown
from watcher.errors import ConfigurationError
from watcher.terminal.commands import (
    CommandApp,
    explain_system_error,
    run_commands,
)
from watcher.terminal.console import TextConsole

EMBEDDED = "embedded"
COUNTS = (1, 4, 16, 64, 128, 256, 512, 1024)
CONSOLE = TextConsole()
app = CommandApp(
    name="spanner-watcher bench",
    add_completion=False,
    help="""Find out which configuration carries your load, and how late changes arrive.

A scenario starts writers on a schedule (an open loop: a slow system cannot hide its latency) and
the watcher, each in a process of its own, and compares every delivered row with what was written:
a run that loses, invents or doubles one fails. Results are JSON files and one HTML page.

\b
  spanner-watcher bench list                            which scenarios there are
  spanner-watcher bench list latency                    its settings, and what they mean
  spanner-watcher bench run --short                     the short set, in some minutes
  spanner-watcher bench run latency --set rates=500,3000 --set seconds=60
  spanner-watcher bench run sustained -d spanner://projects/P/instances/I/databases/D
  spanner-watcher bench compare before after            two results side by side, with ratios
  spanner-watcher bench model --nodes 100 --writes 200000
""",
)


@app.command("run")
def run_command(
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
            metavar="DIRECTORY", help="Write results (JSON) and report.html into this directory."
        ),
    ] = Path("bench-results"),
) -> None:
    """Run scenarios, and verify every delivered row.

    Exits with 1 when a row was lost, invented or doubled, or a run failed.

    A setting is named by its last part (interval) or by more of it (consumer.interval); lists have
    commas between; a later --set replaces an earlier one. `bench list SCENARIO` shows all of them.

    \b
      bench run backlog --set sizes=100000,1000000
      bench run captures --set captures=poll,push --set transactions=100 --set seconds=60
      bench run latency --set keys=zipf --set inserts=0.1 --set dml=true --set writers=4
      bench run clearing --set strategy=processed --out results/processed
      bench run sustained --set profile=ramp --set until=400 --set late_max=1
      bench run latency -d spanner://projects/P/instances/I/databases/D

    With --database, tables Bench... are made in it, filled, and dropped at the end: take a database
    that nobody else uses, and mind what it costs.
    """
    place = None if database == EMBEDDED else database.removeprefix("spanner://")
    chosen = [find_scenario(name) for name in names or ()]
    if short and not chosen:
        chosen = short_set(embedded=place is None)
    if not chosen:
        raise typer.BadParameter("name a scenario (see `bench list`), or use --short")
    plans = [(each, [*(each.short or () if short else ()), *(settings or ())]) for each in chosen]
    for each, overrides in plans:
        check_settings(each, overrides, place)
    results = []
    for each, overrides in plans:
        with Screen(CONSOLE) as screen:
            result = conduct(each, overrides, place, screen)
        print_result(CONSOLE, result)
        result.save(out)
        results.append(result)
    write_report(results, out / "report.html")
    raise typer.Exit(0 if all(result.passed for result in results) else 1)


@app.command("list")
def list_command(
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


def short_set(embedded: bool) -> list[Scenario]:
    """The scenarios of the short set; on another database without those of the embedded server."""
    known = [each for each in SCENARIOS.values() if each.short is not None and each.in_short_set]
    return [each for each in known if embedded or not each.own_server]


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


@app.command("model")
def model_command(
    nodes: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Nodes of the instance.")
    ] = 100,
    writes: Annotated[
        float, typer.Option(min=1, metavar="NUMBER", help="Rows written per second.")
    ] = 200_000,
    shards: Annotated[
        list[int] | None,
        typer.Option(metavar="NUMBER", help="Shard counts to compare; repeatable."),
    ] = None,
    tables: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Tables that share the write rate.")
    ] = 1,
    interval: Annotated[
        float, typer.Option(min=0.01, metavar="SECONDS", help="Seconds between polls.")
    ] = 1.0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An assumption; repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the plot as an HTML page.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Model an instance that is too large to measure.

    Shows how many shards a write rate needs. The assumptions are in benchmarks/model.py and
    docs/benchmarks.md. Exits with 1 if no number of shards carries the rate.
    """
    assumptions = Assumptions.model_validate(parse_assumptions(settings or ()))
    fewest = find_fewest_shards(nodes, writes, interval, assumptions, tables)
    counts = tuple(shards or COUNTS)
    forecasts = [
        forecast(Setup(nodes, writes, count, interval, tables=tables), assumptions)
        for count in counts
    ]
    if json_output:
        CONSOLE.print_json(json.dumps(convert_to_json(fewest, forecasts), default=str))
    else:
        print_model(
            CONSOLE, fewest, find_fewest_nodes(writes, interval, assumptions, tables), forecasts
        )
    if out is not None:
        out.write_text(render_page(chart(nodes, counts, assumptions)))
    raise typer.Exit(0 if fewest is not None else 1)


@app.command("report")
def report_command(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULT...", help="JSON results, or folders.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
) -> None:
    """Make one HTML page of results.

    The page needs no network and no other file.
    """
    write_report([ScenarioResult.load(path) for path in expand_folders(results)], out)


@app.command("compare")
def compare_command(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="A JSON result, or a folder.")],
    second: Annotated[
        Path, typer.Argument(metavar="SECOND", help="Results of the same scenarios.")
    ],
) -> None:
    """Compare two results, with ratios of the second to the first."""
    for old, new in pair_results(first, second):
        print_comparison(CONSOLE, old.scenario, compare_results(old, new))
        for name, (before, after) in find_different_settings(old, new).items():
            CONSOLE.print(f"setting {name}: {shown(str(before))} against {shown(str(after))}")
        for name, each in (("the first", old), ("the second", new)):
            print_busy(CONSOLE, f"{name} result of {each.scenario}", each)


def pair_results(first: Path, second: Path) -> list[tuple[ScenarioResult, ScenarioResult]]:
    """Pairs the results of the same scenarios. Raises ConfigurationError if there are none."""
    first_results = {r.scenario: r for r in map(ScenarioResult.load, expand_folders([first]))}
    second_results = {r.scenario: r for r in map(ScenarioResult.load, expand_folders([second]))}
    both = [name for name in first_results if name in second_results]
    if not both:
        raise ConfigurationError(
            f"nothing to compare: {first} ({', '.join(first_results)}) and {second}"
            f" ({', '.join(second_results)}) have no scenario in common"
        )
    return [(first_results[name], second_results[name]) for name in both]


def expand_folders(paths: list[Path]) -> list[Path]:
    """Replaces each folder by the results in it. Raises ConfigurationError if there are none."""
    results = [f for p in paths for f in (sorted(p.glob("*.json")) if p.is_dir() else [p])]
    if not results:
        raise ConfigurationError(
            f"no results in {', '.join(map(str, paths))}: name JSON files of 'bench run'"
        )
    return results


def write_report(results: list[ScenarioResult], path: Path) -> None:
    """Writes the page and says where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report(results))
    CONSOLE.print(f"report: {path}")


def main() -> NoReturn:
    """Runs the command line; errors are one sentence."""
    run_commands(app, "spanner-watcher bench", explain_system_error)
