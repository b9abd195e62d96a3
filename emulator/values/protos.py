"""The messages and enums of a database's proto bundle, in protobuf's own runtime."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError, Message

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Schema
from spanner_schema.syntax.protos import list_bundle_types

KEY_CHARACTERS = 24


class ProtoTypes:
    """The types of one bundle. ``key`` stands for it in the text of SQLite's statements."""

    def __init__(self, names: tuple[str, ...], descriptors: bytes) -> None:
        digest = hashlib.sha256("\n".join(names).encode() + b"\0" + descriptors)
        self.key = digest.hexdigest()[:KEY_CHARACTERS]
        self.names = frozenset(names)
        self._pool = build_pool(descriptors)

    def message(self, name: str) -> Descriptor | None:
        """The message of this full name; None unless the bundle names it."""
        with suppress(KeyError):
            return self._pool.FindMessageTypeByName(name) if name in self.names else None
        return None

    def enum(self, name: str) -> EnumDescriptor | None:
        """The enum of this full name; None unless the bundle names it."""
        with suppress(KeyError):
            return self._pool.FindEnumTypeByName(name) if name in self.names else None
        return None

    def type(self, name: str) -> Type | None:
        """PROTO or ENUM, whichever the name is; None unless the bundle names it."""
        if self.message(name) is not None:
            return Type(TypeCode.PROTO, proto_name=name)
        return Type(TypeCode.ENUM, proto_name=name) if self.enum(name) is not None else None

    def new(self, name: str) -> Message:
        """An empty message."""
        descriptor = self.message(name)
        if descriptor is None:
            raise ValueError(f"the proto bundle has no message {name}")
        made: Message = message_factory.GetMessageClass(descriptor)()
        return made

    def parse(self, name: str, data: bytes) -> Message:
        """A message from its bytes. Raises ValueError for bytes that are no message."""
        message = self.new(name)
        try:
            message.MergeFromString(data)
        except DecodeError as error:
            raise ValueError(f"the bytes are not a message {name}") from error
        return message

    def holds(self, name: str, number: int) -> bool:
        """Whether a number is a value of an enum; an open one has every number of 32 bits."""
        enum = self.enum(name)
        if enum is None or not -(1 << 31) <= number < 1 << 31:
            return False
        return number in enum.values_by_number or not enum.is_closed


@cache
def proto_types(names: tuple[str, ...], descriptors: bytes) -> ProtoTypes:
    """The types of a bundle, once in a process. Raises ValueError as ``build_pool`` does."""
    types = ProtoTypes(names, descriptors)
    BUNDLES[types.key] = types
    return types


def types_of(schema: Schema) -> ProtoTypes:
    """The types of a schema's bundle; none without one."""
    return proto_types(list_bundle_types(schema), schema.proto_descriptors)


BUNDLES: dict[str, ProtoTypes] = {}
"""By their keys: what the functions of SQL look in."""


def build_pool(descriptors: bytes) -> descriptor_pool.DescriptorPool:
    """A pool of the files of a FileDescriptorSet, and of what they import of protobuf itself.

    Raises ValueError for what is not a FileDescriptorSet, or has files that do not fit together.
    """
    try:
        files = FileDescriptorSet.FromString(descriptors).file
    except DecodeError as error:
        raise ValueError(f"proto_descriptors is not a FileDescriptorSet: {error}") from error
    pool = descriptor_pool.DescriptorPool()
    waiting = {file.name: file for file in files}
    while waiting:
        add_file(pool, next(iter(waiting)), waiting)
    return pool


def add_file(
    pool: descriptor_pool.DescriptorPool, name: str, waiting: dict[str, FileDescriptorProto]
) -> None:
    """Adds a file, after those that it imports."""
    file = waiting.pop(name, None) or find_own_file(name)
    if file is None:
        return
    for imported in file.dependency:
        if not has_file(pool, imported):
            add_file(pool, imported, waiting)
    try:
        pool.AddSerializedFile(file.SerializeToString())
    except TypeError as error:
        raise ValueError(f"proto_descriptors: {name} is not complete: {error}") from error


def has_file(pool: descriptor_pool.DescriptorPool, name: str) -> bool:
    """Whether a pool has a file."""
    with suppress(KeyError):
        return pool.FindFileByName(name) is not None
    return False


def find_own_file(name: str) -> FileDescriptorProto | None:
    """A file that comes with protobuf, such as google/protobuf/timestamp.proto."""
    with suppress(KeyError):
        file = FileDescriptorProto()
        descriptor_pool.Default().FindFileByName(name).CopyToProto(file)
        return file
    return None


NO_TYPES = proto_types((), b"")
"""The types of a database without a bundle."""
