"""``spanner-watcher verify``: compares a replica with Spanner, and prints what differs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from watcher.cli.logs import configure_logging
from watcher.cli.options import (
    POSITIONS_TABLE,
    JsonOption,
    OptionalDatabaseOption,
    PositionsTableOption,
    TablesOption,
)
from watcher.cli.output import CONSOLE, print_json
from watcher.model.errors import ConfigurationError
from watcher.process.terminal.console import label
from watcher.process.terminal.loading import to_run

if to_run(__name__):
    from watcher.cli.config import read_mask_key
    from watcher.cli.interruption import parse_interval
    from watcher.replica.cuts.cut import Cut
    from watcher.replica.cuts.manifest import Manifest, parse_timestamp
    from watcher.replica.cuts.proofs import ProofFiles
    from watcher.replica.cuts.views import View
    from watcher.replica.formats import open_copies
    from watcher.replica.verification.incremental import IncrementalOptions, verify_changes
    from watcher.replica.verification.repairs import RepairOptions
    from watcher.replica.verification.replicas import EVERY_TABLE, VerifyOptions, verify
    from watcher.replica.verification.report import Repair, Report, TableReport
    from watcher.runners.repair import LeasePlace, repair_replica
    from watcher.settings.destination_grammar import CopiesDestination, parse_copies_destination
    from watcher.settings.fields import LATEST
    from watcher.spanner.address import DatabaseAddress
    from watcher.spanner.queries import QueryClient
    from watcher.spanner.read_options import Priority, ReadOptions, write_tag
    from watcher.spanner.timestamps import format_timestamp
    from watcher.tables.masks import read_key_source

EXIT_DIFFERS = 10


def command(
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT:FOLDER",
            help="The replica: what 'replicate' writes, such as delta:FOLDER.",
        ),
    ],
    database: OptionalDatabaseOption = None,
    at: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="latest, or a timestamp such as 2026-01-31T12:00:00Z: the last exact cut at or"
            " before it.",
        ),
    ] = "latest",
    table: TablesOption = None,
    ignore_column: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore-column", metavar="COLUMN", help="A column that is not compared; repeatable."
        ),
    ] = None,
    data_boost: Annotated[
        bool,
        typer.Option(
            "--data-boost", help="Read the tables on Spanner's own machines, at their own price."
        ),
    ] = False,
    incremental: Annotated[
        bool,
        typer.Option(
            "--incremental",
            help="Compare what has changed since the last such run, and a share of all rows.",
        ),
    ] = False,
    within: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="With --incremental: compare every row again within this time.",
        ),
    ] = "7d",
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Replace the rows that differ by Spanner's, at the last cut. The replicator has to"
            " be stopped.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --repair: only say what would be replaced.")
    ] = False,
    mask_key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLACE",
            help="Where the key is by which columns of the copy were hashed: env:NAME (an"
            " environment variable) or file:PATH; repeatable.",
        ),
    ] = None,
    positions_table: PositionsTableOption = POSITIONS_TABLE,
    positions_database: Annotated[
        str | None,
        typer.Option(
            metavar="DATABASE",
            help="Where the replicator keeps its positions and its lease, if it is another"
            " database.",
        ),
    ] = None,
    json_output: JsonOption = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every table.")] = False,
) -> None:
    """Compare a replica with Spanner at one exact timestamp.

    Counts and hashes ranges of keys, inside Spanner (stale reads at the timestamp of the cut, at
    low priority) and in the copy, and divides those that differ until the rows are found. Prints
    the keys of rows that are missing, extra or changed, and the columns that the copy was not to
    have.

    Exits with 0 if the copies equal the tables, 10 if they differ or lack a column, 6 if there is
    no such cut, 7 if Spanner no longer keeps versions of it.

    With --incremental it compares the keys that the copy has changed since the last such run, and
    of the rest as much as makes all of it compared within --within (7d); what is proved is kept
    beside the cuts, and shown by 'status --to' and on the page. Run it often.

    With --repair it compares the newest version of each copy with Spanner at the last cut, replaces
    the rows that differ, and compares them once more: 0 if the copies are equal then.

    Example: spanner-watcher verify --to delta:/lake/music
    """
    configure_logging("logfmt", verbose)
    within_seconds = parse_interval(within, "--within")
    others = {"--at": at != "latest", "--ignore-column": bool(ignore_column)}
    others |= {"--data-boost": data_boost}
    modes = [("--repair", repair), ("--incremental", incremental)]
    check_options([name for name, given in modes if given], dry_run, others)
    copies = parse_copies(to)
    folder = copies.folder
    manifest = Manifest(folder)
    cut = find_cut(manifest, at)
    if cut.copies != copies.format:
        raise ConfigurationError(f"--to: the copies in {folder} are {cut.copies}:{folder}")
    address = DatabaseAddress.parse(database or cut.database)
    queries = QueryClient(address, ReadOptions(Priority.LOW, tag=write_tag("verify")))
    opened, tables = (
        open_copies(cut.copies, copies.place, cut.consumer),
        tuple(table or EVERY_TABLE),
    )
    keys = tuple(read_key_source(read_mask_key(each)) for each in mask_key or ())
    if incremental:
        chosen = IncrementalOptions(tables, within_seconds, mask_keys=keys)
        report = verify_changes(queries, opened, cut, ProofFiles(folder), chosen)
    elif repair:
        lease = LeasePlace(
            address if positions_database is None else DatabaseAddress.parse(positions_database),
            positions_table,
        )
        wanted = RepairOptions(tables, dry_run, mask_keys=keys)
        report = repair_replica(queries, opened, manifest, wanted, lease)
    else:
        ignored = tuple(ignore_column or ())
        options = VerifyOptions(tables, ignored, data_boost, at == LATEST, mask_keys=keys)
        report = verify(queries, opened, cut, options)
        if not ignored:
            settle(manifest, cut, report)
    finish(report, json_output)


def finish(report: Report, json_output: bool) -> None:
    """Prints the report, and ends with its exit code."""
    print_json(report.to_json()) if json_output else print_report(report)
    if not (report.equal and report.untouched):
        raise typer.Exit(EXIT_DIFFERS)


def check_options(modes: Sequence[str], dry_run: bool, others: Mapping[str, bool]) -> None:
    """Raises ConfigurationError for options that do not go together."""
    if dry_run and "--repair" not in modes:
        raise ConfigurationError("--dry-run: it says what --repair would do; add --repair")
    taken = [name for name, given in others.items() if given]
    for mode in modes:
        for name in (*taken, *modes):
            if name != mode:
                raise ConfigurationError(
                    f"{name} and {mode} do not work together: {mode} compares every column at the"
                    " last cut"
                )


def settle(manifest: Manifest, cut: Cut, report: Report) -> None:
    """What others had written to copies that are equal all the same does not matter any more."""
    settled = cut
    for table in report.tables:
        if table.equal and settled.settle(table.table) != settled:
            settled = settled.settle(table.table)
            manifest.note_verified(cut, table.table)
    if settled != cut:
        manifest.write(settled)


def parse_copies(to: str) -> CopiesDestination:
    """What ``--to`` names. Raises ConfigurationError."""
    try:
        return parse_copies_destination(to)
    except ConfigurationError as error:
        raise ConfigurationError(f"--to: {error}") from error


def find_cut(manifest: Manifest, at: str) -> Cut:
    """The cut that is meant: the newest that can be compared, exact or not. Raises
    ReplicaError."""
    return manifest.find_comparable(None if at == LATEST else parse_timestamp(at))


def print_report(report: Report) -> None:
    """Prints a line for each table, and one for each row that differs."""
    CONSOLE.print(f"as of {format_timestamp(report.at)}")
    if report.reasons:
        CONSOLE.print(f"  the cut is not exact: {report.reasons}")
    for table in report.tables:
        print_table(table)


def print_repair(repair: Repair) -> None:
    """Prints what was replaced, or would be."""
    written = f"replaced in version {repair.version}, and equal then"
    done = "to be replaced" if repair.version is None else written
    counts = f"{repair.missing:,} missing, {repair.extra:,} extra, {repair.changed:,} changed"
    CONSOLE.print(f"    {done}: {counts}")
    if repair.columns:
        named = ", ".join(f"{name} ({rows:,} rows)" for name, rows in repair.columns.items())
        CONSOLE.print(f"    columns that differed: {named}")


def print_view(view: View) -> None:
    """Prints what a copy shows of its table, if that is not everything."""
    if view.where is not None:
        CONSOLE.print(f"    rows that satisfy: {view.where}")
    if view.masks:
        masks = ", ".join(f"{name} ({kind})" for name, kind in view.masks.items())
        CONSOLE.print(f"    masked in the copy: {masks}")


def print_table(table: TableReport) -> None:
    """Prints what was found in a table."""
    word, style = ("equal", "green") if table.equal else ("differs", "red")
    if table.equal and table.repair is not None:
        word, style = "repaired", "yellow"
    counts = f"{table.rows:,} rows in Spanner, {table.copy_rows:,} in the copy"
    if table.progress is not None:
        counts = (
            f"{table.progress.text}; compared now: {table.progress.keys:,} keys that have changed,"
            f" {table.rows:,} rows in {table.ranges:,} ranges"
        )
    CONSOLE.print(label(word, style, f"  {table.table}: {table.problem or counts}"))
    if table.uncompared:
        CONSOLE.print(f"    not compared: {', '.join(table.uncompared)}")
    for commit in table.outside:
        CONSOLE.print(f"    written by others since: {commit}")
    if table.left_out:
        CONSOLE.print(f"    not in the copy: {', '.join(table.left_out)}")
    print_view(table.view)
    if table.repair is not None:
        print_repair(table.repair)
    for caveat in table.caveats:
        CONSOLE.print(f"    note: {caveat}")
    for each in table.differences:
        key = json.dumps(each.key, ensure_ascii=False)
        CONSOLE.print(f"    {each.kind.value} {key}")
    if len(table.differences) < table.found:
        CONSOLE.print(f"    and {table.found - len(table.differences):,} more")
    if not table.complete:
        CONSOLE.print("    more ranges differ than were looked at")
