"""CREATE PROTO BUNDLE: the descriptors that a database keeps for its clients.

The bundle is recorded, returned and dropped; columns and values of its types are not supported.
"""

from __future__ import annotations

import re

import apsw
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from ddl import steps
from emulator.errors import invalid_argument

CREATE_BUNDLE = 'CREATE TABLE IF NOT EXISTS "$proto_bundle" (descriptors BLOB NOT NULL)'
KIND = "PROTO BUNDLE"


def check_bundle(step: steps.Step, descriptors: bytes) -> None:
    """Refuses a bundle that names types missing from the descriptors of the statement."""
    if not isinstance(step, steps.CreateVerbatim) or step.item.kind != KIND:
        return
    available = type_names(descriptors)
    for name in bundle_types(step.item.text):
        if name not in available:
            raise invalid_argument(
                f"Error parsing proto bundle: {name} is not in the proto_descriptors of the request"
            )


def save_bundle(connection: apsw.Connection, step: steps.Step, descriptors: bytes) -> None:
    """Keeps the descriptors of a bundle that is created; forgets those of one that is dropped."""
    created = isinstance(step, steps.CreateVerbatim) and step.item.kind == KIND
    dropped = isinstance(step, steps.DropVerbatim) and step.kind == KIND
    if created or dropped:
        connection.execute('DELETE FROM "$proto_bundle"')
    if created:
        connection.execute('INSERT INTO "$proto_bundle" VALUES (?)', (descriptors,))


def load_bundle(connection: apsw.Connection) -> bytes:
    """The descriptors of the database's bundle; empty without one."""
    row = connection.execute('SELECT descriptors FROM "$proto_bundle"').fetchone()
    return bytes(row[0]) if row is not None and isinstance(row[0], bytes) else b""


def bundle_types(text: str) -> list[str]:
    """The types that CREATE PROTO BUNDLE (a.b.C, ...) names."""
    inside = text.partition("(")[2].rpartition(")")[0]
    return [name for name in re.split(r"[\s,]+", inside.replace("`", "")) if name]


def type_names(descriptors: bytes) -> set[str]:
    """The full names of all messages and enums in a FileDescriptorSet."""
    try:
        files = FileDescriptorSet.FromString(descriptors).file
    except DecodeError as error:
        raise invalid_argument(f"proto_descriptors is not a FileDescriptorSet: {error}") from error
    names: set[str] = set()
    for file in files:
        prefix = f"{file.package}." if file.package else ""
        names |= {prefix + enum.name for enum in file.enum_type}
        for message in file.message_type:
            names |= nested_names(message, prefix)
    return names


def nested_names(message: DescriptorProto, prefix: str) -> set[str]:
    """A message and what is declared inside it."""
    name = prefix + message.name
    names = {name} | {f"{name}.{enum.name}" for enum in message.enum_type}
    for inner in message.nested_type:
        names |= nested_names(inner, name + ".")
    return names
