"""``bench report`` and ``bench compare``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from watcher.cli.options import JsonOption
from watcher.cli.output import CONSOLE, print_json
from watcher.model.errors import ConfigurationError
from watcher.process.terminal.loading import to_run
from watcher.process.terminal.values import to_file

if to_run(__name__):
    from benchmarks.comparison import compare_results, find_different_settings
    from benchmarks.pages.report import report as render_report
    from benchmarks.result import ScenarioResult
    from benchmarks.screen import print_busy, print_comparison, shown

EXTRAS = ("bench",)


def report(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULT...", help="JSON results, or folders.")
    ],
    out: Annotated[
        Path, typer.Option(callback=to_file, metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    json_output: JsonOption = False,
) -> None:
    """Make one HTML page of results.

    The page needs no network and no other file.
    """
    loaded = [ScenarioResult.load(path) for path in expand_folders(results)]
    write_report(loaded, out, json_output)


def compare(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="A JSON result, or a folder.")],
    second: Annotated[
        Path, typer.Argument(metavar="SECOND", help="Results of the same scenarios.")
    ],
    json_output: JsonOption = False,
) -> None:
    """Compare two results, with ratios of the second to the first."""
    for old, new in pair_results(first, second):
        if json_output:
            print_json(describe_comparison(old, new))
            continue
        print_comparison(CONSOLE, old.scenario, compare_results(old, new))
        for name, (before, after) in find_different_settings(old, new).items():
            CONSOLE.print(f"setting {name}: {shown(str(before))} against {shown(str(after))}")
        for name, each in (("the first", old), ("the second", new)):
            print_busy(CONSOLE, f"{name} result of {each.scenario}", each)


def describe_comparison(old: ScenarioResult, new: ScenarioResult) -> dict[str, object]:
    """Two results for machines: a line each scenario."""
    return {
        "scenario": old.scenario,
        "figures": [asdict(each) for each in compare_results(old, new)],
        "settings": find_different_settings(old, new),
        "busy": [old.busy, new.busy],
    }


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


def write_report(results: list[ScenarioResult], path: Path, json_output: bool = False) -> None:
    """Writes the page and says where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_report(results))
    if json_output:
        print_json({"report": str(path), "scenarios": [each.scenario for each in results]})
    else:
        CONSOLE.print(f"report: {path}")
