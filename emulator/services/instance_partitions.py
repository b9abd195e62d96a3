"""Instance partitions in google.spanner.admin.instance.v1.InstanceAdmin: where placements are."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from google.longrunning.operations_pb2 import Operation
from google.protobuf.empty_pb2 import Empty

from emulator.engine.clock import wall_micros
from emulator.errors import already_exists, failed_precondition, invalid_argument
from emulator.limits import INSTANCE_PARTITIONS_MAX
from emulator.services.calls import Call, RpcContext
from emulator.services.filters import read_filter
from emulator.services.operations import set_response
from emulator.services.paging import cut_page
from emulator.services.registry import Registry
from emulator.wire import messages as m
from emulator.wire import times
from emulator.wire.messages import Message
from spanner_schema.model.resource_ids import IdRules

SERVICE = "/google.spanner.admin.instance.v1.InstanceAdmin/"
READY = 2
UNITS_MIN = 1000
"""One node, as Spanner asks of every partition."""

RESERVED = "default"
CHANGEABLE = {"display_name", "node_count", "processing_units"}


class InstancePartitions:
    """The methods that are about partitions."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def calls(self) -> Mapping[str, Call]:
        """The methods by name."""
        return {
            SERVICE + "ListInstancePartitions": Call(m.ListInstancePartitionsRequest, self.list),
            SERVICE + "GetInstancePartition": Call(m.GetInstancePartitionRequest, self.get),
            SERVICE + "CreateInstancePartition": Call(
                m.CreateInstancePartitionRequest, self.create
            ),
            SERVICE + "UpdateInstancePartition": Call(
                m.UpdateInstancePartitionRequest, self.update
            ),
            SERVICE + "DeleteInstancePartition": Call(
                m.DeleteInstancePartitionRequest, self.delete
            ),
            SERVICE + "ListInstancePartitionOperations": Call(
                m.ListInstancePartitionOperationsRequest, self.list_operations
            ),
        }

    def list(self, request: Message, context: RpcContext) -> Message:
        """The partitions of an instance, without the default one."""
        self._registry.instances.get(request.parent)
        partitions, token = cut_page(
            self._registry.instances.partitions_of(request.parent), request
        )
        answer = m.ListInstancePartitionsResponse(next_page_token=token)
        answer.instance_partitions.extend(map(self._show, partitions))
        return answer

    def get(self, request: Message, context: RpcContext) -> Message:
        """A partition."""
        return self._show(self._registry.instances.partition(request.name))

    def create(self, request: Message, context: RpcContext) -> Message:
        """A new partition, ready at once."""
        self._registry.instances.get(request.parent)
        identifier = request.instance_partition_id
        problem = IdRules.INSTANCE_PARTITION.explain(identifier)
        if identifier == RESERVED:
            problem = f"the instance partition id '{RESERVED}' is reserved"
        if problem is not None:
            raise invalid_argument(f"Invalid CreateInstancePartition request: {problem}.")
        name = f"{request.parent}/instancePartitions/{identifier}"
        if name in self._registry.instances:
            raise already_exists(f"Instance partition already exists: {name}")
        if len(self._registry.instances.partitions_of(request.parent)) >= INSTANCE_PARTITIONS_MAX:
            raise failed_precondition(
                f"Cannot create instance partition {name}: the limit is {INSTANCE_PARTITIONS_MAX}"
                " per instance."
            )
        proto = m.InstancePartitionProto()
        proto.CopyFrom(request.instance_partition)
        for told in ("update_time", "referencing_databases", "referencing_backups"):
            proto.ClearField(told)
        proto.name, proto.state = name, READY
        proto.display_name = proto.display_name or identifier
        set_size(proto)
        times.fill_timestamp(proto.create_time, wall_micros())
        return self._put(proto, m.CreateInstancePartitionMetadata())

    def update(self, request: Message, context: RpcContext) -> Message:
        """Changes the fields that the mask names."""
        proto = m.InstancePartitionProto()
        proto.CopyFrom(self._registry.instances.partition(request.instance_partition.name))
        paths = set(request.field_mask.paths)
        if not paths or not paths <= CHANGEABLE:
            raise invalid_argument(
                f"Invalid UpdateInstancePartition request: the mask may name {sorted(CHANGEABLE)}."
            )
        for path in paths:
            setattr(proto, path, getattr(request.instance_partition, path))
        set_size(proto)
        return self._put(proto, m.UpdateInstancePartitionMetadata())

    def delete(self, request: Message, context: RpcContext) -> Message:
        """Removes a partition that no placement is in."""
        self._registry.delete_instance_partition(request.name)
        return Empty()

    def list_operations(self, request: Message, context: RpcContext) -> Message:
        """What has worked on the partitions of an instance; all of it is done."""
        self._registry.instances.get(request.parent)
        accept = read_filter(request)
        operations = self._registry.operations.below(
            f"{request.parent}/instancePartitions/", accept
        )
        shown, token = cut_page(operations, request)
        return m.ListInstancePartitionOperationsResponse(operations=shown, next_page_token=token)

    def _show(self, kept: Message) -> Message:
        """A partition with the databases that have placements in it."""
        shown = m.InstancePartitionProto()
        shown.CopyFrom(kept)
        shown.referencing_databases.extend(self._registry.users_of_partition(kept.name))
        return shown

    def _put(self, proto: Message, metadata: Message) -> Message:
        """Keeps a partition; an operation that is already done."""
        times.fill_timestamp(proto.update_time, wall_micros())
        self._registry.instances.put_partition(proto)
        metadata.instance_partition.CopyFrom(proto)
        times.fill_timestamp(metadata.start_time, wall_micros())
        times.fill_timestamp(metadata.end_time, wall_micros())
        name = f"{proto.name}/operations/{uuid.uuid4().hex}"
        self._registry.operations.start(name, metadata)
        shown = self._show(proto)
        self._registry.operations.change(name, lambda operation: set_response(operation, shown))
        answer: Operation = self._registry.operations.get(name)
        return answer


def set_size(proto: Message) -> None:
    """Checks the capacity; a partition without one has a node."""
    if proto.WhichOneof("compute_capacity") is None:
        proto.node_count = 1
    if max(proto.processing_units, proto.node_count * UNITS_MIN) < UNITS_MIN:
        raise invalid_argument(
            f"Instance partition {proto.name} must have at least one node or {UNITS_MIN}"
            " processing units."
        )
