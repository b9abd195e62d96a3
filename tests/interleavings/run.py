"""``python -m interleavings.run``: explores scenarios, replays a schedule, proves the explorer."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace

from interleavings.choosers import Prescribed, parsed
from interleavings.explore import Explorer, Outcome, Summary
from interleavings.scenarios import ALL

FAILURES_SHOWN = 3
SCHEDULES = 300
CHUNK = 500
"""So many schedules are a task of a process."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 when a schedule failed, or a mutation was not found."""
    given = parser().parse_args(arguments)
    names = list(ALL) if given.scenario == "all" else given.scenario.split(",")
    if unknown := [name for name in names if name not in ALL]:
        print(f"there is no scenario '{unknown[0]}'; there are: {', '.join(ALL)}")
        return 2
    if given.replay is not None:
        return replay(names[0], given.replay)
    if given.mutations:
        from interleavings.prove import SCHEDULES_MAX, prove

        return prove(given.schedules or SCHEDULES_MAX, given.seed)
    given.schedules = given.schedules or SCHEDULES
    summaries = explored(names, given)
    show(summaries)
    return int(any(summary.failures for summary in summaries))


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(prog="make explore", description=__doc__)
    options.add_argument("--scenario", default="all", help="names with commas between, or all")
    options.add_argument("--schedules", type=int, help="at most, of each scenario or fault")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--mode", choices=["random", "exhaustive"], default="random")
    options.add_argument("--preemptions", type=int, default=2, help="at most, when exhaustive")
    options.add_argument("--jobs", type=int, default=2, help="processes")
    options.add_argument("--replay", help="a schedule as a failure shows it")
    options.add_argument("--mutations", action="store_true", help="put faults back and find them")
    return options


def explored(names: Iterable[str], given: argparse.Namespace) -> list[Summary]:
    """What came of each scenario, over all processes."""
    totals = {name: Summary(name) for name in names}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.jobs, context) as pool:
        if given.mode == "exhaustive":
            tasks = [
                pool.submit(exhaust, name, given.preemptions, given.schedules) for name in totals
            ]
        else:
            tasks = [
                pool.submit(explore, name, given.seed, first, min(CHUNK, given.schedules - first))
                for name in totals
                for first in range(0, given.schedules, CHUNK)
            ]
        for task in as_completed(tasks):
            part = task.result()
            add(totals[part.scenario], part)
            print(f"{part.scenario}: {part.schedules} schedules", file=sys.stderr, flush=True)
    return list(totals.values())


def add(total: Summary, part: Summary) -> None:
    """Adds what one process has found."""
    total.schedules += part.schedules
    total.steps += part.steps
    total.seconds += part.seconds
    total.failures += part.failures


def explore(name: str, seed: int, first: int, schedules: int) -> Summary:
    """A task: some schedules of a seed."""
    with Explorer(ALL[name]) as explorer:
        return explorer.summary(explorer.random(seed, schedules, first))


def exhaust(name: str, preemptions: int, schedules: int) -> Summary:
    """A task: all schedules with few preemptions."""
    with Explorer(ALL[name]) as explorer:
        return explorer.summary(explorer.exhaustive(preemptions, schedules))


def show(summaries: Sequence[Summary]) -> None:
    """The table, and how to replay what failed."""
    print(f"{'scenario':<24}{'schedules':>10}{'steps':>8}{'failures':>10}{'seconds':>9}{'ms':>7}")
    for each in summaries:
        count = max(each.schedules, 1)
        print(
            f"{each.scenario:<24}{each.schedules:>10}{each.steps / count:>8.0f}"
            f"{len(each.failures):>10}{each.seconds:>9.0f}{each.seconds / count * 1000:>7.0f}"
        )
    for each in summaries:
        for outcome in each.failures[:FAILURES_SHOWN]:
            print()
            print(failure_text(each.scenario, outcome))


def failure_text(scenario: str, outcome: Outcome) -> str:
    """A schedule that failed, and how to run it again."""
    problems = "\n".join(f"  {problem}" for problem in outcome.problems)
    command = f"make explore EXPLORE_ARGS=\"--scenario {scenario} --replay '{outcome.text}'\""
    return f"{scenario}, {outcome.name}:\n{problems}\n  {command}"


def replay(name: str, text: str) -> int:
    """Runs one schedule again and shows its steps."""
    with Explorer(ALL[name]) as explorer:
        outcome = explorer.run(Prescribed(parsed(text)))
    for token, label in zip(outcome.trace, outcome.labels, strict=True):
        print(f"{token:<6}{label}")
    print(
        failure_text(name, replace(outcome, name="replayed")) if outcome.problems else "no failure"
    )
    return int(bool(outcome.problems))


if __name__ == "__main__":
    sys.exit(main())
