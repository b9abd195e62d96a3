"""Backup schedules in google.spanner.admin.database.v1.DatabaseAdmin: kept, and not executed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from google.protobuf.empty_pb2 import Empty

from emulator.engine.clock import wall_micros
from emulator.errors import (
    already_exists,
    failed_precondition,
    invalid_argument,
    resource_not_found,
)
from emulator.limits import SCHEDULES_MAX
from emulator.services.calls import Call, RpcContext
from emulator.services.database_admin import SERVICE
from emulator.services.paging import cut_page
from emulator.services.registry import DATABASE_NAME, Registry
from emulator.wire import messages as m
from emulator.wire import times
from emulator.wire.messages import Message
from spanner_schema.model.resource_ids import IdRules

SCHEDULE_TYPE = "google.spanner.admin.database.v1.BackupSchedule"
SCHEDULE_NAME = re.compile(rf"({DATABASE_NAME.pattern})/backupSchedules/[^/]+")
CHANGEABLE = {"spec", "retention_duration", "full_backup_spec", "incremental_backup_spec"}
RETENTION_MICROS_MAX = 366 * 86_400 * 1_000_000
WINDOW_SECONDS = 4 * 3_600
"""Spanner begins a backup within four hours."""


class BackupSchedules:
    """The methods that are about schedules."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.backups

    def calls(self) -> Mapping[str, Call]:
        """The methods by name."""
        return {
            SERVICE + "CreateBackupSchedule": Call(m.CreateBackupScheduleRequest, self.create),
            SERVICE + "GetBackupSchedule": Call(m.GetBackupScheduleRequest, self.get),
            SERVICE + "ListBackupSchedules": Call(m.ListBackupSchedulesRequest, self.list),
            SERVICE + "UpdateBackupSchedule": Call(m.UpdateBackupScheduleRequest, self.update),
            SERVICE + "DeleteBackupSchedule": Call(m.DeleteBackupScheduleRequest, self.delete),
        }

    def create(self, request: Message, context: RpcContext) -> Message:
        """A new schedule of a database, of which there may be four."""
        problem = IdRules.BACKUP_SCHEDULE.explain(request.backup_schedule_id)
        if problem is not None:
            raise invalid_argument(f"Invalid CreateBackupSchedule request: {problem}.")
        self._registry.database(request.parent)
        prefix = f"{request.parent}/backupSchedules/"
        name = prefix + request.backup_schedule_id
        if self._store.find_schedule(name) is not None:
            raise already_exists(f"Backup schedule already exists: {name}")
        if len(self._store.schedules_below(prefix)) >= SCHEDULES_MAX:
            raise failed_precondition(
                f"Database {request.parent} has {SCHEDULES_MAX} backup schedules, which is the"
                " maximum."
            )
        proto = m.BackupScheduleProto()
        proto.CopyFrom(request.backup_schedule)
        proto.name = name
        return self._keep(proto)

    def get(self, request: Message, context: RpcContext) -> Message:
        """A schedule."""
        return self._find(request.name)

    def list(self, request: Message, context: RpcContext) -> Message:
        """The schedules of a database."""
        self._registry.database(request.parent)
        schedules = self._store.schedules_below(f"{request.parent}/backupSchedules/")
        listed, token = cut_page(schedules, request)
        return m.ListBackupSchedulesResponse(backup_schedules=listed, next_page_token=token)

    def update(self, request: Message, context: RpcContext) -> Message:
        """Changes the fields of the mask."""
        fields = {path.partition(".")[0] for path in request.update_mask.paths}
        if not fields or fields - CHANGEABLE:
            raise invalid_argument(
                "Invalid UpdateBackupSchedule request: the mask must name some of"
                f" {', '.join(sorted(CHANGEABLE))}."
            )
        proto = m.BackupScheduleProto()
        proto.CopyFrom(self._find(request.backup_schedule.name))
        for name in fields:
            proto.ClearField(name)
            if request.backup_schedule.HasField(name):
                getattr(proto, name).CopyFrom(getattr(request.backup_schedule, name))
                getattr(proto, name).SetInParent()
        return self._keep(proto)

    def delete(self, request: Message, context: RpcContext) -> Message:
        """Deletes a schedule."""
        self._store.remove_schedule(self._find(request.name).name)
        return Empty()

    def _keep(self, proto: Message) -> Message:
        """Checks a schedule, says when it was changed, and keeps it."""
        check_schedule(proto)
        proto.spec.cron_spec.time_zone = "UTC"
        proto.spec.cron_spec.creation_window.seconds = WINDOW_SECONDS
        times.fill_timestamp(proto.update_time, wall_micros())
        self._store.put_schedule(proto)
        return proto

    def _find(self, name: str) -> Message:
        """A schedule. Raises NOT_FOUND: for its database first."""
        schedule = self._store.find_schedule(name)
        if schedule is None:
            match = SCHEDULE_NAME.fullmatch(name)
            if match is None:
                raise invalid_argument(f"Invalid backup schedule uri: {name}")
            self._registry.database(match[1])
            raise resource_not_found("Backup schedule", SCHEDULE_TYPE, name)
        return schedule


def check_schedule(proto: Message) -> None:
    """Raises INVALID_ARGUMENT for a schedule that says not enough."""
    problem = None
    if len(proto.spec.cron_spec.text.split()) != 5:
        problem = f"the crontab {proto.spec.cron_spec.text!r} must have five fields"
    elif not 0 < times.to_micros(proto.retention_duration) <= RETENTION_MICROS_MAX:
        problem = "the retention_duration must be above zero and at most 366 days"
    elif proto.WhichOneof("backup_type_spec") is None:
        problem = "it needs a full_backup_spec or an incremental_backup_spec"
    if problem is not None:
        raise invalid_argument(f"Invalid backup schedule: {problem}.")
