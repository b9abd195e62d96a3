"""Spanner's rules for a change of the schema, each with Spanner's refusal."""

from __future__ import annotations

from emulator.engine.schema_rules.change import SchemaChange
from emulator.engine.schema_rules.columns import check_columns
from emulator.engine.schema_rules.expressions import check_expressions
from emulator.engine.schema_rules.foreign_keys import (
    check_foreign_keys,
    refuse_drop_of_managed_index,
)
from emulator.engine.schema_rules.locality_groups import check_locality_groups
from emulator.engine.schema_rules.models import check_models
from emulator.engine.schema_rules.names import check_names, name_constraints
from emulator.engine.schema_rules.placements import check_placements
from emulator.engine.schema_rules.property_graphs import check_property_graphs
from emulator.engine.schema_rules.protos import check_protos, resolve_types
from emulator.engine.schema_rules.search_indexes import check_search_indexes
from emulator.engine.schema_rules.tables import check_tables
from emulator.engine.schema_rules.vector_indexes import check_vector_indexes

__all__ = [
    "SchemaChange",
    "check_change",
    "name_constraints",
    "refuse_drop_of_managed_index",
    "resolve_types",
]


def check_change(change: SchemaChange) -> None:
    """Raises SpannerError for a change that Spanner would refuse."""
    check_names(change)
    check_columns(change)
    check_protos(change)
    check_expressions(change)
    check_foreign_keys(change)
    check_tables(change)
    check_placements(change)
    check_locality_groups(change)
    check_vector_indexes(change)
    check_search_indexes(change)
    check_property_graphs(change)
    check_models(change)
