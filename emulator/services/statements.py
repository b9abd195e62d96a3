"""Statements: their parameters are decoded, they run in a transaction, and have an outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from emulator.engine.partitioned import PartitionedDmlTransaction
from emulator.engine.privileges import Rights
from emulator.engine.read_only import ReadOnlyTransaction
from emulator.engine.results import nothing_to_close
from emulator.engine.splits import QueryPartition
from emulator.engine.state import CompiledStatement
from emulator.errors import invalid_argument, nested_too_deeply
from emulator.limits import PARAMETERS_MAX
from emulator.services.transactions import SelectedTransaction, expect_writable
from emulator.sql.functions.callers import waiting
from emulator.sql.statements import CompiledQuery, Statement
from emulator.values.protos import types_of
from emulator.values.requests import COMMIT_TIMESTAMP, ResultColumn, ResultRows, Stats, Stored
from emulator.wire.messages import Message, ResultSetStats
from emulator.wire.types import read_type, result_metadata
from emulator.wire.values import COMMIT_TIMESTAMP_TEXT, Decoder, decoder
from spanner_schema.model.column_types import Type, TypeCode

PLAN, PROFILE, WITH_STATS, WITH_PLAN_AND_STATS = 1, 2, 3, 4
MEASURED = {PROFILE, WITH_STATS, WITH_PLAN_AND_STATS}
EXPLAINED = {PLAN, PROFILE, WITH_PLAN_AND_STATS}
KINDS = {"bool_value": Type(TypeCode.BOOL), "number_value": Type(TypeCode.FLOAT64)}


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A compiled statement with the values of its parameters, in storage form.

    ``part`` is the partition of a query that is to be read; None reads all of it. ``rights`` are
    those of the session's role, if it has one.
    """

    compiled: CompiledStatement
    params: Mapping[str, Stored]
    part: QueryPartition | None = None
    rights: Rights | None = None

    @property
    def is_query(self) -> bool:
        """Whether it only reads."""
        return isinstance(self.compiled.plain, CompiledQuery)

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """What the statement returns."""
        statement = self.compiled.plain
        if isinstance(statement, CompiledQuery):
            return statement.columns
        return statement.returning.columns if statement.returning else ()

    @property
    def undeclared(self) -> tuple[ResultColumn, ...]:
        """The parameters whose types were inferred."""
        declared = {name.casefold() for name in self.compiled.types}
        user = self.compiled.plain.bindings.user
        return tuple(p for p in user if p.name.casefold() not in declared)


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """What a statement gave, before it is written to the wire."""

    rows: ResultRows
    metadata: Message
    row_count: int | None = None
    lower_bound: bool = False
    mode: int = 0

    def stats(self) -> Message | None:
        """ResultSetStats, where there is something to say; complete when the rows are read."""
        if self.row_count is None and self.mode == 0:
            return None
        stats = ResultSetStats()
        if self.row_count is not None and self.lower_bound:
            stats.row_count_lower_bound = self.row_count
        elif self.row_count is not None:
            stats.row_count_exact = self.row_count
        if self.mode in MEASURED:
            fill_measured(stats, self.rows.stats)
        if self.mode in EXPLAINED:
            fill_plan(stats, self.rows.stats)
        return stats


def bind_statement(
    selected: SelectedTransaction,
    message: Message,
    rights: Rights | None,
    *,
    planned: bool = False,
) -> BoundStatement:
    """Compiles the statement of a message for the schema of its transaction and decodes its
    parameters; undeclared ones take the inferred type. It ends when nobody waits any more: a
    statement of a million characters takes long to be read. Raises PERMISSION_DENIED where
    ``rights`` do not do.

    One that is only ``planned`` needs no values: NULL stands for those that are missing.
    """
    state, sql = selected.transaction.engine.state, message.sql
    if not sql.strip():
        raise invalid_argument("Invalid ExecuteSql request: the SQL statement is empty.")
    bundle = types_of(state.schema)
    declared = message.param_types.items()
    types = {name: read_type(proto, bundle) for name, proto in declared if proto.code}
    sent = {name.casefold(): (name, value) for name, value in message.params.fields.items()}
    try:
        with waiting(selected.check):
            compiled = state.compile(sql, types)
            kinds = kinds_of_untyped(compiled.plain, types, sent)
            if kinds:
                compiled = state.compile(sql, types | kinds)
    except RecursionError as error:
        raise nested_too_deeply() from error
    if rights is not None:
        rights.require_statement(compiled.plain, state.find_reads(compiled))
    if len(compiled.plain.bindings.user) > PARAMETERS_MAX:
        raise invalid_argument(
            f"Number of parameters in query exceeds the maximum allowed limit of {PARAMETERS_MAX}."
        )
    values: dict[str, Stored] = {}
    for parameter in compiled.plain.bindings.user:
        name, value = sent.get(parameter.name.casefold(), (parameter.name, None))
        if value is None and planned:
            values[name] = None
            continue
        if value is None:
            raise invalid_argument(f"No parameter found for binding: {parameter.name}")
        try:
            values[name] = decode_parameter(decoder(parameter.type, bundle), value)
        except ValueError as error:
            raise invalid_argument(f"Invalid value for bind parameter {name}: {error}") from error
    return BoundStatement(compiled, values, rights=rights)


def decode_parameter(decode: Decoder, value: Message) -> Stored:
    """The value of a parameter. Raises ValueError for one that its type does not have, and for the
    placeholder of the commit timestamp, which Spanner knows in mutations only."""
    form = decode(value)
    if form == COMMIT_TIMESTAMP:
        raise ValueError(
            f"'{COMMIT_TIMESTAMP_TEXT}' is for mutations; DML has PENDING_COMMIT_TIMESTAMP()."
        )
    return form


def kinds_of_untyped(
    statement: Statement, types: Mapping[str, Type], sent: Mapping[str, tuple[str, Message]]
) -> dict[str, Type]:
    """Undeclared parameters whose only hint at a type is their JSON kind (true, 1.5)."""
    declared = {name.casefold() for name in types}
    kinds: dict[str, Type] = {}
    for parameter in statement.bindings.user:
        name, value = sent.get(parameter.name.casefold(), ("", None))
        undeclared = parameter.name.casefold() not in declared
        if undeclared and value is not None and parameter.type.code is TypeCode.STRING:
            kind = KINDS.get(value.WhichOneof("kind"))
            if kind is not None:
                kinds[name] = kind
    return kinds


def run(
    statement: BoundStatement, selected: SelectedTransaction, mode: int, *, counted: bool = False
) -> StatementOutcome:
    """Runs a statement in a transaction, once; DML that is sent again is dealt with before.

    ``counted`` counts the rows that it scans.
    """
    engine = selected.transaction.engine
    if mode == PLAN:
        return plan_statement(statement, selected)
    profile = counted or mode in MEASURED
    compiled, params = statement.compiled, statement.params
    rights = statement.rights
    if statement.is_query:
        if isinstance(engine, PartitionedDmlTransaction):
            raise invalid_argument("Partitioned DML transactions do not support queries.")
        part = statement.part
        if part is None:
            rows = engine.query(
                compiled, params, profile=profile, check=selected.check, rights=rights
            )
        elif isinstance(engine, ReadOnlyTransaction):
            rows = engine.query(compiled, params, profile=profile, check=selected.check, part=part)
        else:
            raise invalid_argument(
                "A partition can only be read in the transaction that created it."
            )
        return StatementOutcome(
            rows, selected.add_transaction(result_metadata(rows.columns)), mode=mode
        )
    if isinstance(engine, PartitionedDmlTransaction):
        result = engine.execute(compiled, params, counted=profile)
        rows = no_rows(result.rows_scanned)
        message = selected.add_transaction(result_metadata(()))
        return StatementOutcome(rows, message, result.row_count, lower_bound=True, mode=mode)
    return run_dml(statement, selected, mode, counted=profile)


def run_dml(
    statement: BoundStatement, selected: SelectedTransaction, mode: int, *, counted: bool = False
) -> StatementOutcome:
    """INSERT, UPDATE or DELETE in a read-write transaction."""
    transaction = selected.transaction
    if isinstance(transaction.engine, ReadOnlyTransaction):
        if not transaction.id:
            raise invalid_argument(
                "DML statements may not be performed in single-use transactions, to avoid replay."
            )
        raise invalid_argument(
            "DML statements can only be performed in a read-write or partitioned-dml transaction. "
            "Current transaction type is ReadOnly."
        )
    result = expect_writable(transaction).execute_dml(
        statement.compiled, statement.params, counted=counted, check=selected.check
    )
    rows = result.returned or no_rows()
    rows.stats.rows_scanned = result.rows_scanned
    return StatementOutcome(
        rows, selected.add_transaction(result_metadata(rows.columns)), result.row_count, mode=mode
    )


def plan_statement(statement: BoundStatement, selected: SelectedTransaction) -> StatementOutcome:
    """PLAN: columns, inferred parameters and SQLite's plan; nothing is run. DML has changed no
    row."""
    shown = selected.add_transaction(result_metadata(statement.columns, statement.undeclared))
    rows = no_rows()
    engine = selected.transaction.engine
    if statement.is_query and isinstance(engine, ReadOnlyTransaction):
        rows.stats.plan = engine.explain(statement.compiled, statement.params)
    return StatementOutcome(rows, shown, None if statement.is_query else 0, mode=PLAN)


def no_rows(rows_scanned: int = 0) -> ResultRows:
    """A result without columns."""
    return ResultRows((), iter(()), Stats(rows_scanned=rows_scanned), nothing_to_close)


def fill_measured(stats: Message, measured: Stats) -> None:
    """What PROFILE reports, named as Spanner names it; measured, not estimated."""
    stats.query_stats.update(
        {
            "rows_returned": str(measured.rows_returned),
            "rows_scanned": str(measured.rows_scanned),
            "elapsed_time": f"{measured.elapsed_seconds * 1000:.2f} msecs",
        }
    )


def fill_plan(stats: Message, measured: Stats) -> None:
    """SQLite's plan, a node a step, under a root."""
    root = stats.query_plan.plan_nodes.add(index=0, kind=1, display_name="Embedded Query")
    for index, step in enumerate(measured.plan, start=1):
        stats.query_plan.plan_nodes.add(index=index, kind=1, display_name=step)
        root.child_links.add(child_index=index)
