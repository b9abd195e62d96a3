"""Random requests of every method: sensible ones, some of their fields filled with nonsense."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from google.cloud.spanner_v1 import TypeCode

from emulator.wire import messages as m
from fuzz.texts import random_ddl, random_statement

SPANNER = "/google.spanner.v1.Spanner/"
DATABASES = "/google.spanner.admin.database.v1.DatabaseAdmin/"
INSTANCES = "/google.spanner.admin.instance.v1.InstanceAdmin/"
STREAMS = {"ExecuteStreamingSql", "StreamingRead", "BatchWrite"}
TABLES = {
    "A": ("K", "S", "N", "F", "B", "D", "T", "Y", "J", "M", "L", "W"),
    "A2": ("K", "P", "Q"),
    "R": ("Id", "K", "U"),
}
NAMES = (
    *("A", "a", "A2", "R", "V", "", "K", "S", "N", "P", "Id", "AS1", "AN", "RU", "NoSuch"),
    *("INFORMATION_SCHEMA.TABLES", "$", "`A`", "A;DROP", "\u6f22", "x" * 5_000),
)
INTEGERS = (0, 1, -1, 2, 100, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 253402300799, -62135596801)
TEXTS = (
    *("", "a", "1", "-5", "007", "true", "1.5", "NaN", "Infinity", "1e400", "YWJj", "YQ", "P1Y"),
    *("2020-01-01", "2020-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2020-13-45"),
    *("0001-01-01T00:00:00Z", "2020-13-45T99:99:99Z", "spanner.commit_timestamp()"),
    *("{}", '[1,{"a":2}]', "[" * 3_000, "9" * 400, "1." + "1" * 40, "1" + "0" * 29, "x" * 9_000),
    *("\0", "\u6f22\U0001f600", "6f9619ff-8b86-d011-b42d-00cf4fc964ff"),
)
METHODS: dict[str, tuple[Any, int]] = {
    SPANNER + "ExecuteSql": (m.ExecuteSqlRequest, 30),
    SPANNER + "ExecuteStreamingSql": (m.ExecuteSqlRequest, 25),
    SPANNER + "ExecuteBatchDml": (m.ExecuteBatchDmlRequest, 6),
    SPANNER + "Read": (m.ReadRequest, 8),
    SPANNER + "StreamingRead": (m.ReadRequest, 4),
    SPANNER + "Commit": (m.CommitRequest, 15),
    SPANNER + "BatchWrite": (m.BatchWriteRequest, 3),
    SPANNER + "BeginTransaction": (m.BeginTransactionRequest, 5),
    SPANNER + "Rollback": (m.RollbackRequest, 3),
    SPANNER + "PartitionQuery": (m.PartitionQueryRequest, 3),
    SPANNER + "PartitionRead": (m.PartitionReadRequest, 3),
    SPANNER + "GetSession": (m.GetSessionRequest, 1),
    SPANNER + "CreateSession": (m.CreateSessionRequest, 1),
    SPANNER + "BatchCreateSessions": (m.BatchCreateSessionsRequest, 1),
    SPANNER + "ListSessions": (m.ListSessionsRequest, 1),
    DATABASES + "CreateDatabase": (m.CreateDatabaseRequest, 2),
    DATABASES + "UpdateDatabaseDdl": (m.UpdateDatabaseDdlRequest, 5),
    DATABASES + "GetDatabaseDdl": (m.GetDatabaseDdlRequest, 1),
    DATABASES + "GetDatabase": (m.GetDatabaseRequest, 1),
    DATABASES + "ListDatabases": (m.ListDatabasesRequest, 1),
    DATABASES + "UpdateDatabase": (m.UpdateDatabaseRequest, 1),
    DATABASES + "ListDatabaseOperations": (m.ListDatabaseOperationsRequest, 1),
    INSTANCES + "GetInstance": (m.GetInstanceRequest, 1),
    INSTANCES + "ListInstances": (m.ListInstancesRequest, 1),
    INSTANCES + "ListInstanceConfigs": (m.ListInstanceConfigsRequest, 1),
    INSTANCES + "CreateInstance": (m.CreateInstanceRequest, 1),
    INSTANCES + "UpdateInstance": (m.UpdateInstanceRequest, 1),
}
"""Every method that is fuzzed, with the class of its request and how often it is chosen."""


@dataclass
class World:
    """What requests refer to: grows with the answers."""

    instance: str
    database: str
    sessions: list[str]
    transactions: list[bytes] = field(default_factory=list)
    tokens: list[bytes] = field(default_factory=list)


def random_call(choice: random.Random, world: World) -> tuple[str, Any]:
    """A method and a request for it."""
    weights = [weight for _, weight in METHODS.values()]
    method = choice.choices(list(METHODS), weights)[0]
    request = METHODS[method][0]()
    fill_sensibly(choice, request, world)
    if choice.random() < 0.35:
        spoil(choice, request, world, depth=0)
    return method, request


def fill_sensibly(choice: random.Random, request: Any, world: World) -> None:
    """Gives the fields of a request values that could be meant."""
    names = {each.name for each in request.DESCRIPTOR.fields}
    for name, value in (
        ("session", choice.choice(world.sessions)),
        ("database", world.database),
        ("parent", world.instance),
        ("name", choice.choice([world.database, world.instance, world.sessions[0]])),
        ("sql", random_statement(choice)),
        ("session_count", choice.choice([1, 2, 0, -1])),
        ("instance_id", choice.choice(["other", "x", "Bad Id", ""])),
    ):
        if name in names and request.DESCRIPTOR.fields_by_name[name].message_type is None:
            setattr(request, name, value)
    if "table" in names:
        fill_read(choice, request)
    if "mutations" in names:
        request.single_use_transaction.read_write.SetInParent()
        for _ in range(choice.randrange(4)):
            fill_mutation(choice, request.mutations.add())
    if "mutation_groups" in names:
        fill_mutation(choice, request.mutation_groups.add().mutations.add())
    if "params" in names:
        fill_params(choice, request)
    if "transaction" in names and choice.random() < 0.6:
        fill_selector(choice, request.transaction, world)
    if "transaction_id" in names and choice.random() < 0.5:
        request.transaction_id = choice.choice([*world.transactions[-5:], b"no such"])
    if "options" in names:
        fill_options(choice, request.options)
    fill_admin(choice, request, names)


def fill_admin(choice: random.Random, request: Any, names: set[str]) -> None:
    """Statements of batches and schemas."""
    if "create_statement" in names:
        request.create_statement = f"CREATE DATABASE `z{choice.randrange(10**9)}`"
        request.extra_statements.extend(random_ddl(choice) for _ in range(choice.randrange(3)))
    elif "statements" in names and request.DESCRIPTOR.fields_by_name["statements"].message_type:
        for _ in range(choice.randrange(1, 4)):
            fill_params(choice, request.statements.add(sql=random_statement(choice)))
    elif "statements" in names:
        request.statements.extend(random_ddl(choice) for _ in range(choice.randrange(1, 3)))


def fill_read(choice: random.Random, request: Any) -> None:
    """Table, columns and keys."""
    request.table = choice.choice(list(TABLES))
    known = TABLES[request.table]
    if "columns" in {each.name for each in request.DESCRIPTOR.fields}:
        request.columns.extend(choice.sample(known, choice.randrange(1, len(known))))
    fill_keys(choice, request.key_set)


def fill_keys(choice: random.Random, keys: Any) -> None:
    """Keys and ranges."""
    kind = choice.randrange(3)
    if kind == 0:
        keys.all_ = True
        return
    for _ in range(choice.randrange(3)):
        fill_value_list(choice, keys.keys.add())
    if kind == 2:
        added = keys.ranges.add()
        fill_value_list(choice, getattr(added, choice.choice(["start_closed", "start_open"])))
        fill_value_list(choice, getattr(added, choice.choice(["end_closed", "end_open"])))


def fill_value_list(choice: random.Random, target: Any) -> None:
    """A few values."""
    for _ in range(choice.choice([0, 1, 1, 1, 2, 2, 3])):
        fill_value(choice, target.values.add(), 2)


def fill_value(choice: random.Random, value: Any, depth: int) -> None:
    """A google.protobuf.Value of any kind."""
    kind = choice.randrange(8 if depth else 6)
    if kind < 3:
        value.string_value = choice.choice([*TEXTS, *map(str, INTEGERS)])
    elif kind == 3:
        value.null_value = 0
    elif kind == 4:
        value.number_value = choice.choice([0.0, -1.5, 1e308, float("nan"), float("inf")])
    elif kind == 5:
        value.bool_value = choice.random() < 0.5
    elif kind == 6:
        value.list_value.SetInParent()
        for _ in range(choice.randrange(3)):
            fill_value(choice, value.list_value.values.add(), depth - 1)
    else:
        fill_value(choice, value.struct_value.fields["a"], depth - 1)


def fill_mutation(choice: random.Random, mutation: Any) -> None:
    """A write or a delete."""
    table = choice.choice(list(TABLES))
    kind = choice.choice(["insert", "update", "insert_or_update", "replace", "delete"])
    target = getattr(mutation, kind)
    target.table = table
    if kind == "delete":
        fill_keys(choice, target.key_set)
        return
    columns = [TABLES[table][0], *choice.sample(TABLES[table][1:], choice.randrange(3))]
    target.columns.extend(columns)
    for _ in range(choice.randrange(1, 3)):
        row = target.values.add()
        for column in columns:
            cell = row.values.add()
            if column in {"K", "N"} and choice.random() < 0.8:
                cell.string_value = str(choice.randrange(50))
            else:
                fill_value(choice, cell, 1)


def fill_params(choice: random.Random, request: Any) -> None:
    """The parameters that the statements name, some with types."""
    for name, text in (("i", "3"), ("s", "abc"), ("t", "2020-01-01T00:00:00Z")):
        value = request.params.fields[name]
        if choice.random() < 0.8:
            value.string_value = text
        else:
            fill_value(choice, value, 2)
        if choice.random() < 0.5:
            code = choice.choice([int(TypeCode.INT64), int(TypeCode.STRING), *range(20)])
            request.param_types[name].code = code
    fill_value(choice, request.params.fields["f"], 1)
    fill_value(choice, request.params.fields["j"], 1)
    request.params.fields["l"].list_value.values.add().string_value = "1"
    request.param_types["l"].code = int(TypeCode.ARRAY)
    request.param_types["l"].array_element_type.code = choice.choice([2, 6, 8, 9])


def fill_selector(choice: random.Random, selector: Any, world: World) -> None:
    """An id, a transaction that begins, or one for this request."""
    kind = choice.randrange(4)
    if kind == 0 and world.transactions:
        selector.id = choice.choice(world.transactions[-5:])
    elif kind <= 2:
        fill_options(choice, selector.begin)
    else:
        fill_options(choice, selector.single_use)


def fill_options(choice: random.Random, options: Any) -> None:
    """A mode, some with a timestamp bound."""
    mode = choice.choice(["read_write", "read_write", "read_only", "partitioned_dml"])
    getattr(options, mode).SetInParent()
    if mode != "read_only":
        return
    bound = choice.choice(["strong", "exact_staleness", "max_staleness", "read_timestamp"])
    if bound == "strong":
        options.read_only.strong = True
    else:
        getattr(options.read_only, bound).seconds = choice.choice([0, 1, *INTEGERS[:-2]])


def spoil(choice: random.Random, message: Any, world: World, depth: int) -> None:
    """Fills some fields of a message, and of the messages in it, with nonsense."""
    for each in message.DESCRIPTOR.fields:
        if choice.random() > 0.15 or depth > 4:
            continue
        try:
            spoil_field(choice, message, each, world, depth)
        except (ValueError, TypeError, OverflowError):
            continue  # protobuf's own rules: such a request cannot be sent


def spoil_field(
    choice: random.Random, message: Any, described: Any, world: World, depth: int
) -> None:
    """One field."""
    if described.message_type is not None:
        target = getattr(message, described.name)
        if not described.is_repeated:
            target.SetInParent()
            spoil(choice, target, world, depth + 1)
        elif not described.message_type.GetOptions().map_entry:
            spoil(choice, target.add(), world, depth + 1)
        return
    pool: tuple[Any, ...] = INTEGERS
    if described.type == described.TYPE_STRING:
        pool = (*NAMES, *TEXTS, *world.sessions, world.database, world.instance)
    elif described.type == described.TYPE_BYTES:
        pool = (b"", b"\0" * 20, b"swp2" + b"x" * 60, *world.transactions[-5:], *world.tokens[-5:])
    elif described.type == described.TYPE_BOOL:
        pool = (True, False)
    elif described.type in (described.TYPE_DOUBLE, described.TYPE_FLOAT):
        pool = (0.0, 1e308, float("nan"))
    value = choice.choice(pool)
    if described.is_repeated:
        getattr(message, described.name).append(value)
    else:
        setattr(message, described.name, value)
