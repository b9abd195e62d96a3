"""The messages and enums of the tests, as protoc would describe them."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

PACKAGE = "tests.music"
F = FieldDescriptorProto
MESSAGE, ENUM, INT64, INT32, STRING = (
    F.TYPE_MESSAGE,
    F.TYPE_ENUM,
    F.TYPE_INT64,
    F.TYPE_INT32,
    F.TYPE_STRING,
)


def describe_enum(name: str, *values: str) -> EnumDescriptorProto:
    """An enum whose values count from 0."""
    enum = EnumDescriptorProto(name=name)
    for number, value in enumerate(values):
        enum.value.add(name=value, number=number)
    return enum


def describe_message(name: str, *fields: F) -> DescriptorProto:
    """A message whose fields are numbered in their order."""
    message = DescriptorProto(name=name)
    for number, field in enumerate(fields, 1):
        message.field.add().CopyFrom(field)
        message.field[-1].number = number
    return message


def field(name: str, type_: int, of: str = "", label: int = F.LABEL_OPTIONAL, **more: Any) -> F:
    """A field; ``of`` is the type of a message or an enum."""
    type_name = f".{PACKAGE}.{of}" if of else None
    return F(name=name, type=type_, type_name=type_name, label=label, **more)


def describe_music(*genres: str) -> FileDescriptorProto:
    """SingerInfo and Genre (proto2): what most tests store."""
    file = FileDescriptorProto(name="tests/music.proto", package=PACKAGE, syntax="proto2")
    file.enum_type.add().CopyFrom(describe_enum("Genre", *(genres or GENRES)))
    residence = describe_message(
        "Residence",
        field("start_year", INT64, label=F.LABEL_REQUIRED),
        field("city", STRING, default_value="nowhere"),
    )
    singer = describe_message(
        "SingerInfo",
        field("singer_id", INT64),
        field("birth_date", STRING),
        field("nationality", STRING),
        field("genre", ENUM, "Genre"),
        field("residence", MESSAGE, "SingerInfo.Residence", F.LABEL_REPEATED),
        field("home", MESSAGE, "SingerInfo.Residence"),
        field("songs", STRING, label=F.LABEL_REPEATED),
        field("albums", INT32),
        field("photo", F.TYPE_BYTES),
        field("height", F.TYPE_DOUBLE),
        field("alive", F.TYPE_BOOL),
        field("genres", ENUM, "Genre", F.LABEL_REPEATED),
        field("secret", MESSAGE, "Hidden"),
        field("email", STRING, oneof_index=0),
        field("phone", STRING, oneof_index=0),
    )
    singer.oneof_decl.add(name="contact")
    singer.nested_type.add().CopyFrom(residence)
    file.message_type.add().CopyFrom(singer)
    file.message_type.add().CopyFrom(describe_message("Hidden", field("value", INT64)))
    file.message_type.add().CopyFrom(describe_message("Award", field("year", INT64)))
    return file


def describe_open() -> FileDescriptorProto:
    """Mood (an open enum) and Note (implicit presence), of proto3 and without a package."""
    file = FileDescriptorProto(name="tests/open.proto", syntax="proto3")
    file.enum_type.add().CopyFrom(describe_enum("Mood", "CALM", "WILD"))
    file.message_type.add().CopyFrom(
        describe_message("Note", F(name="text", type=STRING, label=F.LABEL_OPTIONAL))
    )
    return file


GENRES = ("POP", "JAZZ", "FOLK", "ROCK")
GENRE, SINGER, HOME = f"{PACKAGE}.Genre", f"{PACKAGE}.SingerInfo", f"{PACKAGE}.SingerInfo.Residence"
MUSIC, OPEN = describe_music(), describe_open()
BUNDLE = f"CREATE PROTO BUNDLE ({GENRE}, {SINGER}, `{HOME}`, Mood, Note,)"


def serialize(*files: FileDescriptorProto) -> bytes:
    """A FileDescriptorSet."""
    return FileDescriptorSet(file=files).SerializeToString()


DESCRIPTORS = serialize(MUSIC, OPEN)
POOL = descriptor_pool.DescriptorPool()
POOL.AddSerializedFile(MUSIC.SerializeToString())
POOL.AddSerializedFile(OPEN.SerializeToString())
SingerInfo = message_factory.GetMessageClass(POOL.FindMessageTypeByName(SINGER))
Note = message_factory.GetMessageClass(POOL.FindMessageTypeByName("Note"))
Genre = EnumTypeWrapper(POOL.FindEnumTypeByName(GENRE))
Mood = EnumTypeWrapper(POOL.FindEnumTypeByName("Mood"))
