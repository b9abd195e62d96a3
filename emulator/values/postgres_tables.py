"""The tables of information_schema in the PostgreSQL dialect, as far as they are there."""

from __future__ import annotations

from emulator.values.columns import View, parse_columns

POSTGRES_VIEWS: dict[str, View] = {
    "INFORMATION_SCHEMA.SCHEMATA": parse_columns("catalog_name S, schema_name S, schema_owner S"),
    "INFORMATION_SCHEMA.DATABASE_OPTIONS": parse_columns(
        "catalog_name S, schema_name S, option_name S, option_type S, option_value S"
    ),
    "INFORMATION_SCHEMA.TABLES": parse_columns(
        "table_catalog S, table_schema S, table_name S, table_type S, parent_table_name S,"
        " on_delete_action S, spanner_state S, interleave_type S, row_deletion_policy_expression S"
    ),
    "INFORMATION_SCHEMA.COLUMNS": parse_columns(
        "table_catalog S, table_schema S, table_name S, column_name S, ordinal_position I,"
        " column_default S, is_nullable S, data_type S, character_maximum_length I, is_identity S,"
        " is_generated S, generation_expression S, is_stored S, spanner_type S, spanner_state S"
    ),
    "INFORMATION_SCHEMA.INDEXES": parse_columns(
        "table_catalog S, table_schema S, table_name S, index_name S, index_type S,"
        " parent_table_name S, is_unique S, is_null_filtered S, index_state S,"
        " spanner_is_managed S, filter S"
    ),
    "INFORMATION_SCHEMA.INDEX_COLUMNS": parse_columns(
        "table_catalog S, table_schema S, table_name S, index_name S, index_type S,"
        " column_name S, ordinal_position I, column_ordering S, is_nullable S, spanner_type S"
    ),
}
"""The names are those under which the compiler looks for them."""
