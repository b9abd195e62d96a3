"""``Replicator``: keeps copies of tables; what ``spanner-watcher replicate`` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from watcher.captures.change_stream import require_complete
from watcher.captures.poll import PollCapture
from watcher.consumers.states import State
from watcher.model.errors import ConfigurationError
from watcher.replica.copies import CopyState, Dropped, KeepingCopy, StoredCopy, TableCopy
from watcher.replica.copy_views import CHANGED as VIEW_CHANGED
from watcher.replica.copy_views import CopyViews
from watcher.replica.cuts.cut import Cut
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.modes import LATEST as LATEST_ROWS
from watcher.replica.cuts.modes import check_mode
from watcher.replica.cuts.owner import Owner
from watcher.replica.cuts.views import View
from watcher.replica.formats import PARQUET, open_copies, open_own_copies, tie_folder
from watcher.replica.layout import Layouts
from watcher.replica.loads import ChunkLimit
from watcher.replica.new_columns import ColumnPlan, find_rule, plan_columns
from watcher.replica.replaced_copies import find_replaced_copies, list_known, list_waiting
from watcher.replica.replica_window import CutReport
from watcher.replica.rows import compare_columns, has_copy_columns
from watcher.replica.sink import ReplicaSink
from watcher.replica.table_chunks import WatchLoad
from watcher.replica.target import ReplicaTarget
from watcher.replica.upkeep import Compacted
from watcher.replica.verification.deleted_keys import DeletedKeys
from watcher.runners.compaction_runs import make_policy, run_compaction
from watcher.runners.folders import prepare_folders
from watcher.runners.metrics import Metrics
from watcher.runners.replica_settings import (
    choose_dropped,
    fit_layouts,
    list_caveats,
    name_consumer,
    require_replica,
)
from watcher.runners.sources import WatchedTables
from watcher.runners.watcher import Watcher
from watcher.runners.watcher_run.settings import RunContact
from watcher.runners.watcher_run.table_resolver import TableResolver
from watcher.settings.fields import LATEST
from watcher.settings.watcher import WatchConfig
from watcher.sinks.callbacks import Callback


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What a replicator does with a table when it starts: ``load`` or ``merge``, and why."""

    table: str
    action: str
    reason: str


class Replicator:
    """Keeps a copy of each watched table, and the manifest of cuts.

    It is a ``Watcher`` whose sink is a replica: options, tables, captures, positions and leases are
    a watcher's. Without a ``consumer`` the name follows from the folder.
    """

    def __init__(
        self,
        config: WatchConfig,
        report: Callable[[CutReport], object] = lambda _: None,
        take_over: bool = False,
        watch_load: WatchLoad | None = None,
    ) -> None:
        """``report`` is called after every cut. ``take_over``: the folder is made this consumer's
        where it belongs to another one, and every table is loaded again. ``watch_load`` is told
        how far loads are, with each page. Raises ConfigurationError."""
        self._watch_load = watch_load
        self.config = prepare_config(config)
        self._replica = require_replica(self.config)
        self._report = Callback(report)
        self._take_over = take_over
        self._once = False
        self._layouts: Layouts = {}
        self._watcher = Watcher(self.config)
        self._watcher.deliver_windows_to(self._make_sink)

    @property
    def consumer(self) -> str:
        """The consumer's name."""
        assert self.config.consumer is not None, "prepare_config names the consumer"
        return self.config.consumer

    @property
    def metrics(self) -> Metrics:
        """What is counted, as of a ``Watcher``."""
        return self._watcher.metrics

    @property
    def _owner(self) -> Owner:
        return Owner(self.config.address.path, self.consumer, self._replica.format)

    @property
    def _target(self) -> ReplicaTarget[TableCopy]:
        replica = self._replica
        policy = make_policy(replica)
        opened = (replica.format, replica.place, self.consumer, replica.merge, policy)
        copies = open_own_copies(*opened, replica.mode, replica.change_feed, self._layouts)
        manifest = Manifest(replica.folder)
        return ReplicaTarget(
            copies,
            manifest,
            replica.keep_cuts,
            replica.format,
            self._compact,
            self._dropped,
            self._make_deleted(),
            replica.mode,
            list_caveats(replica.mode, self.config.capture == "change-stream"),
        )

    @property
    def _dropped(self) -> Dropped:
        return choose_dropped(self._replica.mode, self._replica.dropped_columns)

    def _make_deleted(self) -> DeletedKeys | None:
        if self._replica.deletes == "none":
            return None
        return DeletedKeys(self.config.address.path, self.consumer, self._replica.compare_keys)

    def _compact(self, table: str, copy: TableCopy, key: Sequence[str]) -> Compacted:
        """As ``CompactCopy``."""
        return run_compaction(self.metrics, self._once, table, copy, key)

    def _make_sink(self, run: RunContact) -> ReplicaSink:
        path = self.config.address.path
        replica = self._replica
        reads = (replica.load_parallelism, replica.data_boost)
        limit = ChunkLimit(replica.load_seconds, replica.load_rows or 0, *reads)
        more = (limit, run.is_stopping, self._watch_load)
        return ReplicaSink(path, self.consumer, self._target, run.check, self._report, *more)

    def _claim(self) -> None:
        """Before the consumer is registered: one that is refused would hold clearing back. Taken
        over once: who takes the folder after this is not to be fought."""
        tie_folder(self._replica.format, self._replica.place)
        self._target.manifest.claim(self._owner, self._take_over)
        self._take_over = False

    def run(self) -> None:
        """As ``Watcher.run``. Raises ConfigurationError where the folder belongs to another
        consumer or database, NotWatchableError for a change stream that leaves changes out."""
        self._resolve()
        self._claim()
        self._watcher.run()

    def run_once(self) -> int:
        """As ``Watcher.run_once``: up to now, then ends. Raises as ``run``."""
        self._resolve()
        self._claim()
        self._once = True
        try:
            return self._watcher.run_once()
        finally:
            self._once = False

    def stop(self) -> None:
        """As ``Watcher.stop``."""
        self._watcher.stop()

    def pause(self) -> None:
        """As ``Watcher.pause``."""
        self._watcher.pause()

    def resume(self) -> None:
        """As ``Watcher.resume``."""
        self._watcher.resume()

    def drain(self) -> None:
        """As ``Watcher.drain``."""
        self._watcher.drain()

    def stop_on_signals(self) -> None:
        """As ``Watcher.stop_on_signals``."""
        self._watcher.stop_on_signals()

    @property
    def state(self) -> State:
        """As ``Watcher.state``."""
        return self._watcher.state

    def _resolve(self) -> WatchedTables:
        """The tables, whose changes a copy can follow."""
        prepare_folders(self.config)
        source = TableResolver(self.config).resolve_latest().source
        require_complete([source.capture(name).table for name in source.tables])
        captures = {name: source.capture(name) for name in source.tables}
        for capture in captures.values():
            View.of_table(capture.table)  # refuses conditions that no change tells of
        self._layouts = fit_layouts(self._replica.layout, captures, self._replica.mode)
        for name in source.tables if self._replica.engine != "spark" else ():
            self._target.copies(name).read_state()  # refuses a copy of another mode
        return source

    def plan(self) -> Iterator[TablePlan]:
        """What a start would do with each table; changes nothing. Raises as ``run``, and
        ConfigurationError where the folder belongs to another consumer or database."""
        source = self._resolve()
        manifest = Manifest(self._replica.folder)
        taken = manifest.check_claim(self._owner, self._take_over)
        last = None if taken else manifest.read_last()
        captures = {name: source.capture(name) for name in source.tables}
        replaced = find_replaced_copies(list_known(last), captures).keys() | list_waiting(last)
        for name, capture in captures.items():
            if name in replaced:
                reason = "the table was dropped and created again, or another one has its name now"
                yield TablePlan(name, "load", reason)
            else:
                yield self._plan_table(capture, last)

    def _plan_table(self, capture: PollCapture, last: Cut | None) -> TablePlan:
        name = capture.table.name
        copy, state = self._read_copy(name)
        if state is None:
            return TablePlan(name, "load", "there is no copy")
        if last is None or name not in last.tables:
            return TablePlan(name, "load", "the last cut does not have it")
        if not CopyViews(Manifest(self._replica.folder)).fits(capture.table, last):
            return TablePlan(name, "load", VIEW_CHANGED)
        if not has_copy_columns(state.schema, capture):
            changes = compare_columns(state.schema, capture)
            plan = self._plan_columns(copy, capture, state, last.end)
            if plan is None:
                return TablePlan(name, "load", f"its columns have changed ({changes.explain()})")
            parts = {
                "with new columns": changes.missing,
                "whose constants are written into its files": plan.constants,
                "whose values are read from Spanner": plan.scanned,
                "without" if self._dropped == "drop" else "kept although dropped": changes.gone,
            }
            said = [f"{what}: {', '.join(names)}" for what, names in parts.items() if names]
            return TablePlan(name, "merge", ", ".join([f"version {state.version}", *said]))
        if state.progress is not None:
            return TablePlan(name, "load", f"{state.progress.explain()}; it goes on from there")
        return TablePlan(name, "merge", f"version {state.version}")

    def _read_copy(self, name: str) -> tuple[StoredCopy, CopyState | None]:
        """A copy as it is. One by Spark is read without Spark."""
        replica, copy = self._replica, self._open_copy(name)
        state = copy.read_state()
        if replica.engine == "spark" and state is not None and isinstance(copy, KeepingCopy):
            check_mode(name, copy.read_all_columns(state.version).names, replica.mode)
        return copy, state

    def _open_copy(self, name: str) -> StoredCopy:
        replica = self._replica
        if replica.engine == "spark":
            return open_copies(replica.format, replica.place, self.consumer)(name)
        return self._target.copies(name)

    def _plan_columns(
        self, copy: StoredCopy, capture: PollCapture, state: CopyState, start: int
    ) -> ColumnPlan | None:
        """How a copy gets the columns that it lacks without a load; None: it cannot. ``start``:
        where the next window starts."""
        end = capture.queries.fetch_read_timestamp()
        takes = find_rule(copy)
        if self._replica.engine == "spark":
            latest = self._replica.mode == LATEST_ROWS
            takes = takes or (lambda _added, _gone, with_values: latest or not with_values)
            if self._replica.format == PARQUET or state.progress is not None:
                takes = None
        return plan_columns(takes, capture, state, start, end, self._dropped)


def prepare_config(config: WatchConfig) -> WatchConfig:
    """The settings as a replicator needs them: a consumer, and whole rows of a change stream.

    Raises ConfigurationError for options that a replica has no use for.
    """
    replica = require_replica(config)
    if config.start != LATEST or config.backfill:
        raise ConfigurationError(
            "a replica loads each table whole and then follows it: remove 'start' and 'backfill'"
        )
    if config.stream.push:
        raise ConfigurationError("a replica is written window by window: remove stream.push")
    if config.stream.operations or config.stream.tag:
        raise ConfigurationError(
            "a replica needs all changes: remove operations and tag from [stream]"
        )
    if config.capture == "change-stream" and replica.deletes == "compare":
        raise ConfigurationError(
            "a change stream tells which rows are deleted: remove deletes = 'compare'"
        )
    stream = config.stream
    if config.capture == "change-stream":
        stream = stream.model_copy(update={"whole_rows": True})
    consumer = config.consumer or name_consumer(replica.copies)
    return config.model_copy(update={"consumer": consumer, "stream": stream})
