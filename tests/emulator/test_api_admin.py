"""Instances, databases, schemas and their operations, through the real client."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance

TABLE = "CREATE TABLE T (K INT64 NOT NULL, V STRING(MAX)) PRIMARY KEY (K)"


def test_an_instance_that_is_not_there_is_not_found(instance: Instance) -> None:
    other = instance._client.instance("no-such-instance")
    assert not other.exists()
    with pytest.raises(exceptions.NotFound, match="Instance not found"):
        other.reload()
    with pytest.raises(exceptions.NotFound, match="Instance not found"):
        other.database("some-database").create()


def test_instances_are_made_changed_and_deleted(instance: Instance) -> None:
    client = instance._client
    created = client.instance("made-here", instance.configuration_name, node_count=2)
    created.create().result(10)
    with pytest.raises(exceptions.AlreadyExists):
        created.create()
    created.display_name = "Another name"
    created.update().result(10)
    created.reload()
    assert (created.display_name, created.node_count, created.processing_units) == (
        "Another name",
        2,
        2000,
    )
    assert "made-here" in {i.name.rpartition("/")[2] for i in client.list_instances()}
    created.delete()
    assert not created.exists()


def test_an_instance_changes_in_the_fields_that_a_mask_names(instance: Instance) -> None:
    api = instance._client.instance_admin_api
    created = instance._client.instance("masked", instance.configuration_name, node_count=1)
    created.create().result(10)
    autoscaling = {"autoscaling_limits": {"min_nodes": 1, "max_nodes": 3}}
    change = {"name": created.name, "edition": "ENTERPRISE", "autoscaling_config": autoscaling}
    for mask, expected in (
        (["edition"], ("ENTERPRISE", 0)),
        (["edition", "autoscaling_config"], ("ENTERPRISE", 3)),
    ):
        api.update_instance(instance=change, field_mask={"paths": mask}).result(10)
        changed = api.get_instance(name=created.name)
        scaled = changed.autoscaling_config.autoscaling_limits.max_nodes
        assert (changed.edition.name, scaled) == expected
    with pytest.raises(exceptions.InvalidArgument, match="the mask may name"):
        api.update_instance(instance=change, field_mask={"paths": ["create_time"]})
    created.delete()


def test_the_one_configuration_is_listed(instance: Instance) -> None:
    configs = list(instance._client.list_instance_configs())
    assert [c.name.rpartition("/")[2] for c in configs] == ["emulator-config"]


@pytest.mark.ddl(TABLE)
def test_a_database_is_listed_reloaded_and_dropped(instance: Instance, database: Database) -> None:
    assert database.database_id in {d.name.rpartition("/")[2] for d in instance.list_databases()}
    database.reload()
    assert next(iter(database.ddl_statements)).startswith("CREATE TABLE T (")
    assert database.version_retention_period == "1h"
    assert database.earliest_version_time >= database.create_time


def test_a_database_that_is_not_there_is_not_found(instance: Instance) -> None:
    with pytest.raises(exceptions.NotFound, match="Database not found"):
        instance.database("no-such-database").reload()
    snapshot = instance.database("no-such-database").snapshot()
    with pytest.raises(exceptions.NotFound, match="Database not found"), snapshot as opened:
        list(opened.execute_sql("SELECT 1"))


def test_a_database_that_is_gone_can_be_dropped_again(instance: Instance) -> None:
    database = instance.database("dropped-twice", ddl_statements=[TABLE])
    for _ in range(2):
        database.create().result(10)
        database.reload()  # the client sends an empty encryption_config from here on
        database.drop()
        database.drop()
    with pytest.raises(exceptions.NotFound, match="Instance not found"):
        instance._client.instance("no-such-instance").database("some-database").drop()


def test_nothing_is_left_of_a_database_whose_schema_is_refused(instance: Instance) -> None:
    refused = instance.database("refused-here", ddl_statements=[TABLE, TABLE])
    with pytest.raises(exceptions.FailedPrecondition, match="Duplicate name"):
        refused.create().result(10)
    assert not refused.exists()


@pytest.mark.ddl(TABLE)
def test_a_second_database_of_the_same_name_is_refused(
    instance: Instance, database: Database
) -> None:
    with pytest.raises(exceptions.AlreadyExists):
        instance.database(database.database_id).create()


@pytest.mark.ddl(TABLE)
def test_statements_before_a_failing_one_stay(database: Database) -> None:
    operation = database.update_ddl(
        [
            "ALTER TABLE T ADD COLUMN A INT64",
            "DROP TABLE Missing",
            "ALTER TABLE T ADD COLUMN B INT64",
        ]
    )
    with pytest.raises(exceptions.NotFound, match="Missing"):
        operation.result(10)
    assert len(operation.metadata.commit_timestamps) == 1
    assert [p.progress_percent for p in operation.metadata.progress] == [100, 0, 0]
    database.reload()
    text = database.ddl_statements[0]
    assert "A INT64" in text
    assert "B INT64" not in text


@pytest.mark.ddl(TABLE)
def test_an_operation_id_is_used_once(database: Database) -> None:
    operation = database.update_ddl(["ALTER TABLE T ADD COLUMN A INT64"], operation_id="my_change")
    operation.result(10)
    assert operation.operation.name.endswith("/operations/my_change")
    with pytest.raises(exceptions.AlreadyExists):
        database.update_ddl(["ALTER TABLE T ADD COLUMN B INT64"], operation_id="my_change")


@pytest.mark.ddl(TABLE)
def test_a_syntax_error_is_answered_at_once(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="Error parsing Spanner DDL"):
        database.update_ddl(["CREATE TABEL X (A INT64) PRIMARY KEY (A)"])


@pytest.mark.ddl(TABLE)
def test_a_retention_period_that_spanner_does_not_offer_is_refused_at_once(
    database: Database,
) -> None:
    change = (
        f"ALTER DATABASE `{database.database_id}` SET OPTIONS (version_retention_period = '%s')"
    )
    for period in ("0d", "59m", "8d", "soon"):
        with pytest.raises(exceptions.InvalidArgument, match="version_retention_period"):
            database.update_ddl(["CREATE ROLE never", change % period])
    database.update_ddl([change % "2d"]).result(10)
    database.reload()
    assert database.version_retention_period == "2d"


def test_the_leader_of_a_database_is_told(database: Database) -> None:
    change = f"ALTER DATABASE `{database.database_id}` SET OPTIONS (default_leader = 'us-east4')"
    database.update_ddl([change]).result(10)
    database.reload()
    assert database.default_leader == "us-east4"


def test_roles_are_listed_by_name(database: Database) -> None:
    database.update_ddl(["CREATE ROLE zoo", "CREATE ROLE ape"]).result(10)
    names = [role.name.rpartition("/")[2] for role in database.list_database_roles()]
    assert names == sorted(names)
    assert {"ape", "public", "zoo"} <= set(names)


def test_a_protected_database_is_not_dropped(database: Database) -> None:
    database.enable_drop_protection = True
    database.update(["enable_drop_protection"]).result(10)
    with pytest.raises(exceptions.FailedPrecondition, match="drop protection"):
        database.drop()
    database.enable_drop_protection = False
    database.update(["enable_drop_protection"]).result(10)


def test_another_default_time_zone_is_refused_by_name(database: Database) -> None:
    alter = f"ALTER DATABASE `{database.database_id}` SET OPTIONS (default_time_zone = %s)"
    with pytest.raises(exceptions.MethodNotImplemented, match="default_time_zone"):
        database.update_ddl([alter % "'UTC'"]).result(10)
    database.update_ddl([alter % "'America/Los_Angeles'", alter % "NULL"]).result(10)


def test_what_is_not_supported_is_named(database: Database) -> None:
    with pytest.raises(exceptions.MethodNotImplemented, match="GetIamPolicy"):
        database.get_iam_policy()


@pytest.mark.ddl(TABLE, "CREATE ROLE reader")
def test_what_there_is_none_of_is_an_empty_list(instance: Instance, database: Database) -> None:
    assert list(instance.list_backups(filter_=f"database:{database.name}")) == []
    assert list(instance.list_backup_operations(filter_=f"name:{database.name}")) == []
    api = database._instance._client.database_admin_api
    assert list(api.list_backup_schedules(parent=database.name)) == []
    roles = [role.name.rpartition("/")[2] for role in database.list_database_roles()]
    assert roles == ["public", "reader", "spanner_info_reader", "spanner_sys_reader"]
    partitions = instance._client.instance_admin_api
    assert list(partitions.list_instance_partitions(parent=instance.name)) == []
    assert list(partitions.list_instance_partition_operations(parent=instance.name)) == []
    with pytest.raises(exceptions.NotFound, match="Instance not found"):
        list(partitions.list_instance_partitions(parent=f"{instance.name}-none"))


def test_an_instance_with_a_protected_database_is_not_deleted(instance: Instance) -> None:
    other = instance._client.instance("protected", instance.configuration_name, node_count=1)
    other.create().result(10)
    database = other.database("kept", enable_drop_protection=False)
    database.create().result(10)
    database.enable_drop_protection = True
    database.update(["enable_drop_protection"]).result(10)
    with pytest.raises(exceptions.FailedPrecondition, match="drop protection"):
        other.delete()
    assert database.exists()
    database.enable_drop_protection = False
    database.update(["enable_drop_protection"]).result(10)
    other.delete()
    assert not other.exists()


def test_a_mask_of_an_instance_names_its_fields(instance: Instance) -> None:
    api = instance._client.instance_admin_api
    shown = api.get_instance({"name": instance.name, "field_mask": {"paths": ["name"]}})
    assert (shown.name, shown.config) == (instance.name, "")
    with pytest.raises(exceptions.InvalidArgument, match="mask"):
        api.get_instance({"name": instance.name, "field_mask": {"paths": ["no.such"]}})
