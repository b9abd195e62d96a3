"""Fields of requests that this server does not serve: UNIMPLEMENTED by name, where they are set.

What every other field is stands in ``tests/emulator/test_request_fields.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message as ProtoMessage

from emulator.errors import unimplemented
from emulator.wire.messages import Message

REFUSED = frozenset(
    {
        "BackupSchedule.encryption_config",
        "CopyBackupEncryptionConfig.kms_key_name",
        "CopyBackupEncryptionConfig.kms_key_names",
        "CreateBackupEncryptionConfig.kms_key_name",
        "CreateBackupEncryptionConfig.kms_key_names",
        "CreateDatabaseRequest.encryption_config",
        "DeleteInstancePartitionRequest.etag",
        "InstancePartition.autoscaling_config",
        "InstancePartition.etag",
        "RequestOptions.client_context",
        "RestoreDatabaseEncryptionConfig.kms_key_name",
        "RestoreDatabaseEncryptionConfig.kms_key_names",
    }
)
Path = tuple[str, ...]


def list_refused(descriptor: Any, above: Path = ()) -> Iterator[Path]:
    """The paths of a request's refused fields; none of them is below a list."""
    for field in descriptor.fields:
        path = (*above, field.name)
        if f"{descriptor.name}.{field.name}" in REFUSED:
            yield path
        elif is_own_message(field):
            yield from list_refused(field.message_type, path)


def is_own_message(field: Any) -> bool:
    """Whether a field holds one message of Spanner's API."""
    inner = field.message_type
    return bool(inner and field.has_presence and inner.file.package.startswith("google.spanner"))


def says(value: Any) -> bool:
    """Whether the value of a field asks for anything: clients send messages without a field."""
    return not isinstance(value, ProtoMessage) or bool(value.ListFields())


def refuse_fields(request: Message, paths: tuple[Path, ...]) -> None:
    """Raises UNIMPLEMENTED where one of the fields is set."""
    for path in paths:
        message = request
        for name in path[:-1]:
            if not message.HasField(name):
                break
            message = getattr(message, name)
        else:
            if any(field.name == path[-1] and says(value) for field, value in message.ListFields()):
                raise unimplemented(f"The field {'.'.join(path)} of {request.DESCRIPTOR.name}")
