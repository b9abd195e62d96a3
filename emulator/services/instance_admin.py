"""google.spanner.admin.instance.v1.InstanceAdmin: one configuration, any number of instances."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping

from google.longrunning.operations_pb2 import Operation
from google.protobuf.empty_pb2 import Empty
from google.protobuf.field_mask_pb2 import FieldMask

from emulator.engine.clock import wall_micros
from emulator.errors import already_exists, invalid_argument, not_found, unimplemented
from emulator.services.calls import Call, RpcContext
from emulator.services.filters import select
from emulator.services.operations import set_response
from emulator.services.paging import cut_page
from emulator.services.registry import Registry
from emulator.wire import messages as m
from emulator.wire import times
from emulator.wire.messages import Message
from spanner_schema.model.resource_ids import IdRules

SERVICE = "/google.spanner.admin.instance.v1.InstanceAdmin/"
CONFIG_ID = "emulator-config"
READY = 2
PROJECT = re.compile(r"projects/[^/]+\Z")
UNITS_PER_NODE = 1000
KEPT = ("autoscaling_config", "default_backup_schedule_type", "edition")
"""Fields that are kept as they are given."""
CHANGEABLE = {"config", "display_name", "labels", "node_count", "processing_units", *KEPT}


class InstanceAdmin:
    """The methods of the service."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def calls(self) -> Mapping[str, Call]:
        """The methods by name."""
        return {
            SERVICE + "ListInstanceConfigs": Call(m.ListInstanceConfigsRequest, self.list_configs),
            SERVICE + "GetInstanceConfig": Call(m.GetInstanceConfigRequest, self.get_config),
            SERVICE + "ListInstances": Call(m.ListInstancesRequest, self.list),
            SERVICE + "GetInstance": Call(m.GetInstanceRequest, self.get),
            SERVICE + "CreateInstance": Call(m.CreateInstanceRequest, self.create),
            SERVICE + "UpdateInstance": Call(m.UpdateInstanceRequest, self.update),
            SERVICE + "DeleteInstance": Call(m.DeleteInstanceRequest, self.delete),
            SERVICE + "ListInstanceConfigOperations": Call(
                m.ListInstanceConfigOperationsRequest, self.list_config_operations
            ),
        }

    def list_configs(self, request: Message, context: RpcContext) -> Message:
        """The only configuration."""
        answer = m.ListInstanceConfigsResponse()
        configs, answer.next_page_token = cut_page([CONFIG_ID], request)
        names = (f"{request.parent}/instanceConfigs/{config}" for config in configs)
        answer.instance_configs.extend(map(config_message, names))
        return answer

    def get_config(self, request: Message, context: RpcContext) -> Message:
        """That configuration."""
        if not request.name.endswith(f"/instanceConfigs/{CONFIG_ID}"):
            raise not_found(f"Instance config not found: {request.name}")
        return config_message(request.name)

    def list(self, request: Message, context: RpcContext) -> Message:
        """The instances of a project."""
        prefix = f"{request.parent}/instances/"
        names = self._registry.instances.below(prefix)
        shown, token = cut_page(select(names, request, self._registry.instances.get), request)
        answer = m.ListInstancesResponse(next_page_token=token)
        answer.instances.extend(self._registry.instances.get(name) for name in shown)
        return answer

    def get(self, request: Message, context: RpcContext) -> Message:
        """An instance, or the fields of it that the mask names."""
        instance = self._registry.instances.get(request.name)
        if not request.field_mask.paths:
            return instance
        if not request.field_mask.IsValidForDescriptor(m.InstanceProto.DESCRIPTOR):
            raise invalid_argument(
                "Invalid GetInstance request: the mask may name the fields of an instance."
            )
        answer = m.InstanceProto()
        request.field_mask.MergeMessage(instance, answer)
        return answer

    def create(self, request: Message, context: RpcContext) -> Message:
        """A new instance, ready at once."""
        if not PROJECT.match(request.parent):
            raise invalid_argument(
                f"Invalid CreateInstance request: '{request.parent}' is not projects/PROJECT."
            )
        problem = IdRules.INSTANCE.explain(request.instance_id)
        if problem is not None:
            raise invalid_argument(f"Invalid CreateInstance request: {problem}.")
        name = f"{request.parent}/instances/{request.instance_id}"
        if name in self._registry.instances:
            raise already_exists(f"Instance already exists: {name}")
        proto = m.InstanceProto()
        proto.CopyFrom(request.instance)
        proto.name, proto.state = name, READY
        proto.display_name = proto.display_name or request.instance_id
        set_size(proto, proto.node_count, proto.processing_units)
        times.fill_timestamp(proto.create_time, wall_micros())
        times.fill_timestamp(proto.update_time, wall_micros())
        self._registry.instances.put(proto)
        return self._finish_operation(proto, m.CreateInstanceMetadata(instance=proto))

    def update(self, request: Message, context: RpcContext) -> Message:
        """Changes the fields that the mask names."""
        proto = m.InstanceProto()
        proto.CopyFrom(self._registry.instances.get(request.instance.name))
        paths = set(request.field_mask.paths)
        if not paths or not paths <= CHANGEABLE:
            raise invalid_argument(
                f"Invalid UpdateInstance request: the mask may name {sorted(CHANGEABLE)}."
            )
        if "config" in paths and request.instance.config != proto.config:
            raise unimplemented("Moving an instance to another configuration")
        if "display_name" in paths:
            proto.display_name = request.instance.display_name
        if "labels" in paths:
            proto.labels.clear()
            proto.labels.update(request.instance.labels)
        kept = sorted(paths.intersection(KEPT))
        for name in kept:
            proto.ClearField(name)
        FieldMask(paths=kept).MergeMessage(request.instance, proto)
        if "node_count" in paths:
            set_size(proto, request.instance.node_count, 0)
        elif "processing_units" in paths:
            set_size(proto, 0, request.instance.processing_units)
        times.fill_timestamp(proto.update_time, wall_micros())
        self._registry.instances.put(proto)
        return self._finish_operation(proto, m.UpdateInstanceMetadata(instance=proto))

    def delete(self, request: Message, context: RpcContext) -> Message:
        """Removes an instance with its databases; a missing one is NOT_FOUND."""
        self._registry.delete_instance(request.name)
        return Empty()

    def list_config_operations(self, request: Message, context: RpcContext) -> Message:
        """The one configuration does not change."""
        return m.ListInstanceConfigOperationsResponse()

    def _finish_operation(self, proto: Message, metadata: Message) -> Message:
        """An operation that is already done when it is returned."""
        times.fill_timestamp(metadata.start_time, wall_micros())
        times.fill_timestamp(metadata.end_time, wall_micros())
        name = f"{proto.name}/operations/{uuid.uuid4().hex}"
        self._registry.operations.start(name, metadata)
        self._registry.operations.change(name, lambda operation: set_response(operation, proto))
        answer: Operation = self._registry.operations.get(name)
        return answer


def set_size(proto: Message, nodes: int, units: int) -> None:
    """Sets nodes and processing units, of which a request gives one."""
    if nodes < 0 or units < 0 or (nodes and units and nodes * UNITS_PER_NODE != units):
        raise invalid_argument("Only one of node_count and processing_units may be given.")
    proto.processing_units = units or nodes * UNITS_PER_NODE or UNITS_PER_NODE
    proto.node_count = proto.processing_units // UNITS_PER_NODE


def config_message(name: str) -> Message:
    """The configuration as the API shows it."""
    return m.InstanceConfigProto(name=name, display_name="Embedded Spanner")
