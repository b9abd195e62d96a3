"""CREATE, ALTER and DROP PROTO BUNDLE: which types a database has, and their descriptors."""

from __future__ import annotations

from dataclasses import replace

from emulator.engine.proto_descriptors import merge_descriptors, type_names
from emulator.errors import (
    already_exists,
    failed_precondition,
    invalid_argument,
    not_found,
    unimplemented,
)
from emulator.values.protos import ProtoTypes, proto_types
from spanner_schema.model import steps
from spanner_schema.model.schema import Schema, Verbatim
from spanner_schema.syntax.protos import (
    KIND,
    BundleChange,
    list_bundle_types,
    read_bundle_change,
    write_bundle,
)

ALTER = f"ALTER {KIND}"
RESERVED_PACKAGES = ("spanner", "tech.spanner")


def changes_bundle(step: steps.Step) -> bool:
    """Whether a statement is about the proto bundle."""
    match step:
        case steps.CreateVerbatim(item):
            return item.kind == KIND
        case steps.DropVerbatim(kind):
            return kind == KIND
        case steps.OtherStatement(kind):
            return kind == ALTER
        case _:
            return False


def refuse_missing_bundle(schema: Schema, step: steps.Step) -> None:
    """Raises FAILED_PRECONDITION where the bundle is missing, or there already."""
    exists = bool(list_bundle_types(schema))
    if not changes_bundle(step) or (isinstance(step, steps.DropVerbatim) and step.if_exists):
        return
    if isinstance(step, steps.CreateVerbatim):
        if exists:
            raise failed_precondition(
                "Proto bundle already exists; change it with ALTER PROTO BUNDLE"
            )
        return
    if not exists:
        verb = "drop" if isinstance(step, steps.DropVerbatim) else "alter"
        raise failed_precondition(f"Proto bundle does not yet exist; cannot {verb} it")


def resolve_bundle(schema: Schema, step: steps.Step) -> steps.Step:
    """ALTER PROTO BUNDLE as the statement that creates the bundle that it makes."""
    if not isinstance(step, steps.OtherStatement):
        return step
    names = alter_names(list_bundle_types(schema), read_bundle_change(step.text))
    return steps.CreateVerbatim(Verbatim(KIND, "", write_bundle(names)))


def alter_names(names: tuple[str, ...], change: BundleChange) -> tuple[str, ...]:
    """The types after a change. Raises ALREADY_EXISTS, or NOT_FOUND."""
    for name in change.inserted:
        if name in names:
            raise already_exists(f"Type already exists: `{name}` in the proto bundle")
    after = [*names, *change.inserted]
    for name in (*change.updated, *change.deleted):
        if name not in after:
            verb = "update" if name in change.updated else "remove"
            raise not_found(
                f"Tried to {verb} `{name}` which does not already exist in the proto bundle."
            )
    return tuple(name for name in after if name not in change.deleted)


def keep_descriptors(
    before: Schema, after: Schema, step: steps.Step, descriptors: bytes, *, checked: bool
) -> Schema:
    """The schema after a statement about the bundle, with the descriptors of its types.

    ``descriptors`` came with the statement. ``checked`` is False for one of long ago.
    """
    names = list_bundle_types(after)
    if not names:
        return replace(after, proto_descriptors=b"")
    if isinstance(step, steps.OtherStatement):
        change = read_bundle_change(step.text)
        taken = {*change.inserted, *change.updated}
        if checked:
            refuse_missing(descriptors, taken)
        descriptors = merge_descriptors(
            before.proto_descriptors, descriptors, {*names} - taken, taken
        )
    elif checked:
        refuse_missing(descriptors, {*names})
    if checked:
        check_types(read_types(names, descriptors))
    return replace(after, proto_descriptors=descriptors)


def read_types(names: tuple[str, ...], descriptors: bytes) -> ProtoTypes:
    """The types of a bundle. Raises INVALID_ARGUMENT for descriptors that do not fit together."""
    try:
        return proto_types(names, descriptors)
    except ValueError as error:
        raise invalid_argument(f"Error parsing proto bundle: {error}") from error


def refuse_missing(descriptors: bytes, names: set[str]) -> None:
    """Raises INVALID_ARGUMENT for types that are not in the descriptors of the request."""
    available = type_names(descriptors)
    for name in sorted(names - available):
        raise invalid_argument(
            f"Error parsing proto bundle: {name} is not in the proto_descriptors of the request"
        )


def check_types(types: ProtoTypes) -> None:
    """Raises for messages that Spanner takes into no bundle."""
    for name in sorted(types.names):
        for package in RESERVED_PACKAGES:
            if name.startswith(f"{package}."):
                raise failed_precondition(f"Message `{name}` has reserved package `{package}`.")
        message = types.message(name)
        if message is not None and message.extensions:
            raise unimplemented(f"Message extensions, which `{name}` has,")
