"""The instances that the server keeps, and their partitions."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping

from emulator.errors import invalid_argument, resource_not_found
from emulator.services.backup_store import decode_message, encode_message
from emulator.wire.messages import InstancePartitionProto, InstanceProto, Message

INSTANCE_TYPE = "google.spanner.admin.instance.v1.Instance"
PARTITION_TYPE = "google.spanner.admin.instance.v1.InstancePartition"
INSTANCE_NAME = re.compile(r"projects/[^/]+/instances/[^/]+")
PARTITION_NAME = re.compile(rf"({INSTANCE_NAME.pattern})/instancePartitions/[^/]+")


class InstanceStore:
    """Thread-safe, under the lock of the registry. Every change is saved before it is answered."""

    def __init__(self, lock: threading.RLock, save: Callable[[], None]) -> None:
        self._lock, self._save = lock, save
        self._instances: dict[str, Message] = {}
        self._partitions: dict[str, Message] = {}

    def __contains__(self, name: str) -> bool:
        """Whether there is an instance, or a partition, of this name."""
        return name in self._instances or name in self._partitions

    def below(self, prefix: str) -> list[str]:
        """The names of the instances that begin like this."""
        with self._lock:
            return sorted(name for name in self._instances if name.startswith(prefix))

    def get(self, name: str) -> Message:
        """An instance. Raises NOT_FOUND as Spanner does."""
        proto = self._instances.get(name)
        if proto is None:
            if INSTANCE_NAME.fullmatch(name) is None:
                raise invalid_argument(f"Invalid instance uri: {name}")
            raise resource_not_found("Instance", INSTANCE_TYPE, name)
        return proto

    def put(self, proto: Message) -> None:
        """Adds or replaces an instance."""
        with self._lock:
            self._instances[proto.name] = proto
            self._save()

    def partition(self, name: str) -> Message:
        """A partition of an instance. Raises NOT_FOUND: for its instance first."""
        proto = self._partitions.get(name)
        if proto is None:
            match = PARTITION_NAME.fullmatch(name)
            if match is None:
                raise invalid_argument(f"Invalid instance partition uri: {name}")
            self.get(match[1])
            raise resource_not_found("Instance partition", PARTITION_TYPE, name)
        return proto

    def put_partition(self, proto: Message) -> None:
        """Adds or replaces a partition of an instance."""
        with self._lock:
            self._partitions[proto.name] = proto
            self._save()

    def partitions_of(self, instance: str) -> list[Message]:
        """The partitions of an instance, by name."""
        prefix = f"{instance}/instancePartitions/"
        with self._lock:
            found = sorted(self._partitions.items())
            return [proto for name, proto in found if name.startswith(prefix)]

    def delete(self, name: str) -> None:
        """Removes an instance with its partitions."""
        with self._lock:
            del self._instances[name]
            for partition in self.partitions_of(name):
                del self._partitions[partition.name]
            self._save()

    def delete_partition(self, name: str) -> None:
        """Removes a partition of an instance."""
        with self._lock:
            del self._partitions[name]
            self._save()

    def describe(self) -> dict[str, object]:
        """What the file says of them; the caller has the lock."""
        return {
            "instances": [encode_message(each) for each in self._instances.values()],
            "instance_partitions": [encode_message(each) for each in self._partitions.values()],
        }

    def load(self, content: Mapping[str, list[str]]) -> None:
        """Those of a file."""
        for text in content.get("instances", []):
            proto = decode_message(InstanceProto, text)
            self._instances[proto.name] = proto
        for text in content.get("instance_partitions", []):
            partition = decode_message(InstancePartitionProto, text)
            self._partitions[partition.name] = partition
