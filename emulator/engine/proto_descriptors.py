"""Descriptors of protocol buffers: what they declare, and the merging of ALTER PROTO BUNDLE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.message import DecodeError

from emulator.errors import invalid_argument


def read_files(descriptors: bytes) -> dict[str, FileDescriptorProto]:
    """The files of a FileDescriptorSet by their names. Raises INVALID_ARGUMENT."""
    try:
        return {file.name: file for file in FileDescriptorSet.FromString(descriptors).file}
    except DecodeError as error:
        raise invalid_argument(f"proto_descriptors is not a FileDescriptorSet: {error}") from error


def type_names(descriptors: bytes) -> set[str]:
    """The full names of all messages and enums in a FileDescriptorSet."""
    names: set[str] = set()
    for file in read_files(descriptors).values():
        prefix = package_prefix(file)
        names |= {prefix + enum.name for enum in file.enum_type}
        for message in file.message_type:
            names |= nested_names(message, prefix)
    return names


def package_prefix(file: FileDescriptorProto) -> str:
    """What stands before the names of a file's types."""
    return f"{file.package}." if file.package else ""


def nested_names(message: DescriptorProto, prefix: str) -> set[str]:
    """A message and what is declared inside it."""
    name = prefix + message.name
    names = {name} | {f"{name}.{enum.name}" for enum in message.enum_type}
    for inner in message.nested_type:
        names |= nested_names(inner, name + ".")
    return names


def merge_descriptors(old: bytes, new: bytes, kept: set[str], taken: set[str]) -> bytes:
    """The descriptors after ALTER PROTO BUNDLE: ``kept`` types are as they were, ``taken`` ones as
    they are in the new descriptors. What neither names follows the type around it."""
    files = read_files(old)
    merger = Merger(frozenset(kept), frozenset(taken))
    for name, file in read_files(new).items():
        files[name] = merger.merge_file(files[name], file) if name in files else file
    return FileDescriptorSet(file=files.values()).SerializeToString()


@dataclass(frozen=True, slots=True)
class Merger:
    """Chooses, type by type, between what was and what comes."""

    kept: frozenset[str]
    taken: frozenset[str]

    def merge_file(self, old: FileDescriptorProto, new: FileDescriptorProto) -> FileDescriptorProto:
        """A file with the types of both."""
        merged = FileDescriptorProto()
        merged.CopyFrom(new)
        del merged.message_type[:], merged.enum_type[:]
        merged.dependency.extend(each for each in old.dependency if each not in new.dependency)
        prefix = package_prefix(new)
        merged.enum_type.extend(self._enums(old.enum_type, new.enum_type, prefix, stays=False))
        merged.message_type.extend(
            self._messages(old.message_type, new.message_type, prefix, stays=False)
        )
        return merged

    def _message(
        self, old: DescriptorProto, new: DescriptorProto, name: str, *, stays: bool
    ) -> DescriptorProto:
        """A message with the types that are declared inside it."""
        stays = self._stays(name, stays)
        merged = DescriptorProto()
        merged.CopyFrom(old if stays else new)
        del merged.nested_type[:], merged.enum_type[:]
        prefix = f"{name}."
        merged.enum_type.extend(self._enums(old.enum_type, new.enum_type, prefix, stays=stays))
        merged.nested_type.extend(
            self._messages(old.nested_type, new.nested_type, prefix, stays=stays)
        )
        return merged

    def _messages(
        self,
        old: Iterable[DescriptorProto],
        new: Iterable[DescriptorProto],
        prefix: str,
        *,
        stays: bool,
    ) -> Iterator[DescriptorProto]:
        olds = {each.name: each for each in old}
        news = {each.name: each for each in new}
        for short in olds | news:
            if short in olds and short in news:
                name = prefix + short
                yield self._message(olds[short], news[short], name, stays=stays)
            else:
                yield olds[short] if short in olds else news[short]

    def _enums(
        self,
        old: Iterable[EnumDescriptorProto],
        new: Iterable[EnumDescriptorProto],
        prefix: str,
        *,
        stays: bool,
    ) -> Iterator[EnumDescriptorProto]:
        olds = {each.name: each for each in old}
        news = {each.name: each for each in new}
        for short in olds | news:
            if short in olds and (short not in news or self._stays(prefix + short, stays)):
                yield olds[short]
            else:
                yield news[short]

    def _stays(self, name: str, outer: bool) -> bool:
        """Whether a type is as it was; one that nobody names follows the type around it."""
        return name in self.kept or (outer and name not in self.taken)
