"""Every field of every request that the server takes: implemented, refused by its name, or ignored
for a reason. A new version of the client with another field fails here."""

from __future__ import annotations

from typing import Any

import pytest
from google.api_core.exceptions import InvalidArgument, MethodNotImplemented
from google.cloud.spanner_v1.database import Database
from google.protobuf.duration_pb2 import Duration

from emulator.faults import FaultInjector
from emulator.server import list_calls
from emulator.services.registry import Registry
from emulator.services.request_fields import REFUSED

KEPT = "kept, shown, and without effect: it sizes machines, of which there are none"
OUTPUT = "told by the server; what a client sends for it is ignored, as in Spanner"
IGNORED = {
    "BatchWriteRequest.request_options": "priorities and tags: see RequestOptions",
    "BeginTransactionRequest.request_options": "priorities and tags: see RequestOptions",
    "BeginTransactionRequest.routing_hint": "where a key is: there is one server",
    "CommitRequest.precommit_token": "commits of all sessions are judged without it",
    "CommitRequest.routing_hint": "where a key is: there is one server",
    "ExecuteBatchDmlRequest.last_statements": "a promise that lets Spanner do less",
    "ExecuteSqlRequest.last_statement": "a promise that lets Spanner do less",
    "ExecuteSqlRequest.routing_hint": "where a key is: there is one server",
    "ReadRequest.routing_hint": "where a key is: there is one server",
    "ReadRequest.order_by": "rows come in key order, which every value allows",
    "ListInstancesRequest.instance_deadline": "every instance answers at once",
    "ListInstancePartitionsRequest.instance_partition_deadline": "each answers at once",
    "ListInstancePartitionOperationsRequest.instance_partition_deadline": "each answers at once",
    "ListInstanceConfigOperationsRequest.filter": "no operation changes a configuration",
    "ListInstanceConfigOperationsRequest.page_size": "no operation changes a configuration",
    "ListInstanceConfigOperationsRequest.page_token": "no operation changes a configuration",
    "UpdateDatabaseDdlRequest.throughput_mode": "statements run as quickly as they can anyway",
    **{
        f"{name}EncryptionConfig.encryption_type": "nothing is encrypted; keys are refused"
        for name in ("CreateBackup", "CopyBackup", "RestoreDatabase")
    },
    "CrontabSpec.time_zone": OUTPUT,
    "CrontabSpec.creation_window": OUTPUT,
    "BackupSchedule.update_time": OUTPUT,
    **{
        f"Backup.{name}": OUTPUT
        for name in (
            *("create_time", "size_bytes", "freeable_size_bytes", "exclusive_size_bytes", "state"),
            *("referencing_databases", "encryption_info", "encryption_information"),
            *("database_dialect", "referencing_backups", "max_expire_time", "backup_schedules"),
            *("incremental_backup_chain_id", "oldest_version_time", "instance_partitions"),
        )
    },
    "PartitionOptions.partition_size_bytes": "ignored by Spanner, too",
    "PartitionOptions.max_partitions": "ignored by Spanner, too",
    "TransactionOptions.isolation_level": "every transaction is serializable, which is stricter",
    "Session.name": OUTPUT,
    "Session.create_time": OUTPUT,
    "Session.approximate_last_use_time": OUTPUT,
    "IncludeReplicas.auto_failover_disabled": "there is one replica",
    **{
        f"Database.{name}": OUTPUT + "; UpdateDatabase refuses a mask with it"
        for name in (
            *("state", "create_time", "restore_info", "encryption_config", "encryption_info"),
            *("version_retention_period", "earliest_version_time", "default_leader"),
            *("database_dialect", "reconciling"),
        )
    },
    **{
        f"Instance.{name}": KEPT
        for name in (
            *("replica_compute_capacity", "autoscaling_config", "instance_type", "endpoint_uris"),
            *("free_instance_metadata", "edition", "default_backup_schedule_type"),
        )
    },
    **{f"Instance.{name}": OUTPUT for name in ("state", "create_time", "update_time")},
    **{
        f"InstancePartition.{name}": OUTPUT
        for name in (
            *("state", "create_time", "update_time", "referencing_databases"),
            "referencing_backups",
        )
    },
}
IMPLEMENTED = """
BatchCreateSessionsRequest: database session_template session_count
BatchWriteRequest: session mutation_groups exclude_txn_from_change_streams
BeginTransactionRequest: session options mutation_key
CommitRequest: session transaction_id single_use_transaction mutations return_commit_stats
CommitRequest: max_commit_delay request_options
CopyBackupRequest: parent backup_id source_backup expire_time encryption_config
CreateBackupRequest: parent backup_id backup encryption_config
CreateBackupScheduleRequest: parent backup_schedule_id backup_schedule
DeleteBackupRequest: name
DeleteBackupScheduleRequest: name
GetBackupRequest: name
GetBackupScheduleRequest: name
RestoreDatabaseRequest: parent database_id backup encryption_config
UpdateBackupRequest: backup update_mask
UpdateBackupScheduleRequest: backup_schedule update_mask
Backup: database version_time expire_time name
BackupSchedule: name spec retention_duration full_backup_spec incremental_backup_spec
BackupScheduleSpec: cron_spec
CrontabSpec: text
CreateDatabaseRequest: parent create_statement extra_statements database_dialect proto_descriptors
CreateInstancePartitionRequest: parent instance_partition_id instance_partition
CreateInstanceRequest: parent instance_id instance
CreateSessionRequest: database session
DeleteInstancePartitionRequest: name
DeleteInstanceRequest: name
DeleteSessionRequest: name
DropDatabaseRequest: database
ExecuteBatchDmlRequest: session transaction statements seqno request_options
ExecuteSqlRequest: session transaction sql params param_types resume_token query_mode
ExecuteSqlRequest: partition_token seqno query_options request_options directed_read_options
ExecuteSqlRequest: data_boost_enabled
GetDatabaseDdlRequest: database
GetDatabaseRequest: name
GetInstanceConfigRequest: name
GetInstancePartitionRequest: name
GetInstanceRequest: name field_mask
GetSessionRequest: name
ListBackupOperationsRequest: parent filter page_size page_token
ListBackupSchedulesRequest: parent page_size page_token
ListBackupsRequest: parent filter page_size page_token
ListDatabaseOperationsRequest: parent filter page_size page_token
ListDatabaseRolesRequest: parent page_size page_token
ListDatabasesRequest: parent page_size page_token
ListInstanceConfigOperationsRequest: parent
ListInstanceConfigsRequest: parent page_size page_token
ListInstancePartitionOperationsRequest: parent filter page_size page_token
ListInstancePartitionsRequest: parent page_size page_token
ListInstancesRequest: parent page_size page_token filter
ListSessionsRequest: database page_size page_token filter
PartitionQueryRequest: session transaction sql params param_types partition_options
PartitionReadRequest: session transaction table index columns key_set partition_options
ReadRequest: session transaction table index columns key_set limit resume_token partition_token
ReadRequest: request_options directed_read_options data_boost_enabled lock_hint
RollbackRequest: session transaction_id
UpdateDatabaseDdlRequest: database statements operation_id proto_descriptors
UpdateDatabaseRequest: database update_mask
UpdateInstancePartitionRequest: instance_partition field_mask
UpdateInstanceRequest: instance field_mask
Session: labels creator_role multiplexed
RequestOptions: priority request_tag transaction_tag
MutationGroup: mutations
Mutation: insert update insert_or_update replace delete send ack
Write: table columns values
Delete: table key_set
KeySet: keys ranges all_
KeyRange: start_closed start_open end_closed end_open
TransactionOptions: read_write partitioned_dml read_only exclude_txn_from_change_streams
ReadWrite: read_lock_mode multiplexed_session_previous_transaction_id
ReadOnly: strong min_read_timestamp max_staleness read_timestamp exact_staleness
ReadOnly: return_read_timestamp
InstancePartition: name config display_name node_count processing_units
Instance: name config display_name node_count processing_units labels
TransactionSelector: single_use id begin
Statement: sql params param_types
Type: code array_element_type struct_type type_annotation proto_type_fqn
StructType: fields
Field: name type_
DirectedReadOptions: include_replicas exclude_replicas
QueryOptions: optimizer_version optimizer_statistics_package
ReplicaSelection: location type_
IncludeReplicas: replica_selections
ExcludeReplicas: replica_selections
Database: name enable_drop_protection
"""
OWN = "google.spanner"


def table() -> set[str]:
    """What the lists say is implemented."""
    lines = (line.partition(":") for line in IMPLEMENTED.split("\n") if line)
    return {f"{message}.{field}" for message, _, fields in lines for field in fields.split()}


def fields_below(descriptor: Any, found: set[str]) -> None:
    """The fields of a request and of what is in it, but below those that have no effect."""
    for field in descriptor.fields:
        name = f"{descriptor.name}.{field.name}"
        if name in found:
            continue
        found.add(name)
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            inner = inner.fields_by_name["value"].message_type
        ours = inner is not None and inner.file.package.startswith(OWN)
        opaque = name in REFUSED or (name in IGNORED and "." in name)
        if ours and not opaque and name not in {"Mutation.send", "Mutation.ack"}:
            fields_below(inner, found)


def test_every_field_of_every_request_is_known() -> None:
    found: set[str] = set()
    for call in list_calls(Registry(None, 1), FaultInjector(None)).values():
        if call.request.DESCRIPTOR.file.package.startswith(OWN):
            fields_below(call.request.DESCRIPTOR, found)
    lists = [table(), set(REFUSED), set(IGNORED)]
    known = lists[0] | lists[1] | lists[2]
    assert found - known == set(), "not in any list"
    assert known - found == set(), "no field of a request"
    assert sum(map(len, lists)) == len(known), "in two lists"


def session_of(database: Database) -> str:
    name: str = database.spanner_api.create_session(database=database.name).name
    return name


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("execute_sql", {"sql": "SELECT 1", "data_boost_enabled": True}),
        ("read", {"table": "T", "columns": ["Id"], "key_set": {"all_": True}, "lock_hint": 2}),
        (
            "commit",
            {"single_use_transaction": {"read_write": {}}, "max_commit_delay": Duration(seconds=1)},
        ),
    ],
)
@pytest.mark.ddl("CREATE TABLE T (Id INT64) PRIMARY KEY (Id)")
def test_a_field_where_it_makes_no_sense_is_refused(
    database: Database, method: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument, match=r"data_boost_enabled|lock_hint|max_commit_delay"):
        getattr(database.spanner_api, method)({"session": session_of(database), **fields})


@pytest.mark.ddl
def test_a_field_that_is_not_served_is_unimplemented_by_its_name(database: Database) -> None:
    secret = {"client_context": {"secure_context": {"user": "a"}}}
    with pytest.raises(MethodNotImplemented, match=r"request_options\.client_context"):
        database.spanner_api.execute_sql(
            {"session": session_of(database), "sql": "SELECT 1", "request_options": secret}
        )
    request = {
        "parent": database.name.partition("/databases/")[0],
        "create_statement": "CREATE DATABASE encrypted",
        "encryption_config": {"kms_key_name": "projects/p/locations/l/keyRings/r/cryptoKeys/k"},
    }
    with pytest.raises(MethodNotImplemented, match="encryption_config"):
        database._instance._client.database_admin_api.create_database(request)


def labelled(database: Database, expression: str) -> set[str]:
    listed = database.spanner_api.list_sessions({"database": database.name, "filter": expression})
    return {session.labels["env"] for session in listed}


@pytest.mark.ddl
def test_sessions_are_listed_by_their_labels(database: Database) -> None:
    for env in ("dev", "Prod"):
        database.spanner_api.create_session(
            {"database": database.name, "session": {"labels": {"env": env}}}
        )
    both = {"dev", "Prod"}
    for expression, expected in {
        "labels.env:*": both,
        "labels.env:dev": {"dev"},
        "labels.env:prod": {"Prod"},
        "labels.env=pro": set(),
        "labels.env:dev OR labels.env:prod": both,
        "labels.env:dev labels.env:prod": set(),
        "labels.env:* AND NOT (labels.env:dev)": {"Prod"},
        "labels.other:* OR labels.env:dev": {"dev"},
    }.items():
        assert labelled(database, expression) == expected, expression
    for wrong in ("labels.env", "(labels.env:dev", "AND", "labels.env:dev)", "(" * 50):
        with pytest.raises(InvalidArgument, match="Invalid filter"):
            labelled(database, wrong)


@pytest.mark.ddl("CREATE TABLE T (Id INT64) PRIMARY KEY (Id)")
def test_operations_are_listed_by_what_they_did(database: Database) -> None:
    database.update_ddl(["CREATE INDEX I ON T (Id)"]).result(30)
    instance, _, identifier = database.name.partition("/databases/")
    api = database._instance._client.database_admin_api

    def count(expression: str) -> int:
        own = f"name:{identifier}/operations AND ({expression})"
        return len(list(api.list_database_operations({"parent": instance, "filter": own})))

    kind = "metadata.@type=type.googleapis.com/google.spanner.admin.database.v1"
    assert count("done:true") >= 2
    assert count("done:false OR error:*") == 0
    assert count(f"{kind}.UpdateDatabaseDdlMetadata") >= 1
    assert count(f"({kind}.CreateDatabaseMetadata) AND (metadata.database:{identifier})") == 1
    assert count('metadata.progress.start_time < "2018-03-28T14:50:00Z"') == 0


def test_instances_are_listed_by_name_and_labels(database: Database) -> None:
    api = database._instance._client.instance_admin_api
    instance = database.name.partition("/databases/")[0]
    parent, _, identifier = instance.partition("/instances/")

    def names(expression: str) -> set[str]:
        return {i.name for i in api.list_instances({"parent": parent, "filter": expression})}

    assert instance in names(f"name:{identifier.upper()}")
    assert names("name:nothing") == set()
    assert names("labels.env:*") == set()
