"""The tables of information_schema in the PostgreSQL dialect: its own columns, then Spanner's."""

from __future__ import annotations

from emulator.values.columns import View, parse_columns

INFORMATION_TABLES: dict[str, View] = {
    "INFORMATION_SCHEMA.APPLICABLE_ROLES": parse_columns("grantee S, role_name S, is_grantable S"),
    "INFORMATION_SCHEMA.CHANGE_STREAM_COLUMNS": parse_columns(
        "change_stream_catalog S, change_stream_schema S, change_stream_name S, table_catalog "
        "S, table_schema S, table_name S, column_name S"
    ),
    "INFORMATION_SCHEMA.CHANGE_STREAM_OPTIONS": parse_columns(
        "change_stream_catalog S, change_stream_schema S, change_stream_name S, option_name "
        "S, option_type S, option_value S"
    ),
    "INFORMATION_SCHEMA.CHANGE_STREAM_PRIVILEGES": parse_columns(
        "grantor S, grantee S, change_stream_catalog S, change_stream_schema S, "
        "change_stream_name S, privilege_type S, is_grantable S"
    ),
    "INFORMATION_SCHEMA.CHANGE_STREAM_TABLES": parse_columns(
        "change_stream_catalog S, change_stream_schema S, change_stream_name S, table_catalog "
        "S, table_schema S, table_name S, all_columns S"
    ),
    "INFORMATION_SCHEMA.CHANGE_STREAMS": parse_columns(
        "change_stream_catalog S, change_stream_schema S, change_stream_name S, all S"
    ),
    "INFORMATION_SCHEMA.CHECK_CONSTRAINTS": parse_columns(
        "constraint_catalog S, constraint_schema S, constraint_name S, check_clause S, "
        "spanner_state S"
    ),
    "INFORMATION_SCHEMA.COLUMN_COLUMN_USAGE": parse_columns(
        "table_catalog S, table_schema S, table_name S, column_name S, dependent_column S"
    ),
    "INFORMATION_SCHEMA.COLUMN_OPTIONS": parse_columns(
        "table_catalog S, table_schema S, table_name S, column_name S, option_name S, "
        "option_value S, option_type S"
    ),
    "INFORMATION_SCHEMA.COLUMN_PRIVILEGES": parse_columns(
        "grantor S, grantee S, table_catalog S, table_schema S, table_name S, column_name S, "
        "privilege_type S, is_grantable S"
    ),
    "INFORMATION_SCHEMA.COLUMNS": parse_columns(
        "table_catalog S, table_schema S, table_name S, column_name S, ordinal_position I, "
        "column_default S, is_nullable S, data_type S, character_maximum_length I, "
        "character_octet_length I, numeric_precision I, numeric_precision_radix I, "
        "numeric_scale I, datetime_precision I, interval_type S, interval_precision I, "
        "character_set_catalog S, character_set_schema S, character_set_name S, "
        "collation_catalog S, collation_schema S, collation_name S, domain_catalog S, "
        "domain_schema S, domain_name S, udt_catalog S, udt_schema S, udt_name S, "
        "scope_catalog S, scope_schema S, scope_name S, maximum_cardinality I, dtd_identifier "
        "S, is_self_referencing S, is_identity S, identity_generation S, identity_start S, "
        "identity_increment S, identity_maximum S, identity_minimum S, identity_cycle S, "
        "identity_kind S, identity_start_with_counter S, identity_skip_range_min S, "
        "identity_skip_range_max S, is_generated S, generation_expression S, is_updatable S, "
        "spanner_type S, is_stored S, spanner_state S, is_hidden S, on_update_expression S"
    ),
    "INFORMATION_SCHEMA.CONSTRAINT_COLUMN_USAGE": parse_columns(
        "table_catalog S, table_schema S, table_name S, column_name S, constraint_catalog S, "
        "constraint_schema S, constraint_name S"
    ),
    "INFORMATION_SCHEMA.CONSTRAINT_TABLE_USAGE": parse_columns(
        "table_catalog S, table_schema S, table_name S, constraint_catalog S, "
        "constraint_schema S, constraint_name S"
    ),
    "INFORMATION_SCHEMA.DATABASE_OPTIONS": parse_columns(
        "catalog_name S, schema_name S, option_name S, option_type S, option_value S"
    ),
    "INFORMATION_SCHEMA.ENABLED_ROLES": parse_columns("role_name S, spanner_is_system S"),
    "INFORMATION_SCHEMA.INDEX_COLUMNS": parse_columns(
        "table_catalog S, table_schema S, table_name S, index_name S, index_type S, "
        "column_name S, ordinal_position I, column_ordering S, is_nullable S, spanner_type S"
    ),
    "INFORMATION_SCHEMA.INDEXES": parse_columns(
        "table_catalog S, table_schema S, table_name S, index_name S, index_type S, "
        "parent_table_name S, is_unique S, is_null_filtered S, index_state S, "
        "spanner_is_managed S, filter S, search_partition_by SS, search_order_by SS"
    ),
    "INFORMATION_SCHEMA.INFORMATION_SCHEMA_CATALOG_NAME": parse_columns("catalog_name S"),
    "INFORMATION_SCHEMA.KEY_COLUMN_USAGE": parse_columns(
        "constraint_catalog S, constraint_schema S, constraint_name S, table_catalog S, "
        "table_schema S, table_name S, column_name S, ordinal_position I, "
        "position_in_unique_constraint I"
    ),
    "INFORMATION_SCHEMA.LOCALITY_GROUP_OPTIONS": parse_columns(
        "locality_group_name S, option_name S, option_value S"
    ),
    "INFORMATION_SCHEMA.PARAMETERS": parse_columns(
        "specific_catalog S, specific_schema S, specific_name S, ordinal_position I, "
        "parameter_mode S, is_result S, as_locator S, parameter_name S, data_type S, "
        "character_maximum_length I, character_octet_length I, character_set_catalog S, "
        "character_set_schema S, character_set_name S, collation_catalog S, collation_schema "
        "S, collation_name S, numeric_precision I, numeric_precision_radix I, numeric_scale "
        "I, datetime_precision I, interval_type S, interval_precision I, udt_catalog S, "
        "udt_schema S, udt_name S, scope_catalog S, scope_schema S, scope_name S, "
        "maximum_cardinality I, dtd_identifier S, parameter_default S, spanner_type S"
    ),
    "INFORMATION_SCHEMA.PLACEMENT_OPTIONS": parse_columns(
        "placement_name S, option_name S, option_type S, option_value S"
    ),
    "INFORMATION_SCHEMA.PLACEMENTS": parse_columns("placement_name S, is_default S"),
    "INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS": parse_columns(
        "constraint_catalog S, constraint_schema S, constraint_name S, "
        "unique_constraint_catalog S, unique_constraint_schema S, unique_constraint_name S, "
        "match_option S, update_rule S, delete_rule S, spanner_state S"
    ),
    "INFORMATION_SCHEMA.ROLE_CHANGE_STREAM_GRANTS": parse_columns(
        "grantor S, grantee S, change_stream_catalog S, change_stream_schema S, "
        "change_stream_name S, privilege_type S, is_grantable S"
    ),
    "INFORMATION_SCHEMA.ROLE_COLUMN_GRANTS": parse_columns(
        "grantor S, grantee S, table_catalog S, table_schema S, table_name S, column_name S, "
        "privilege_type S, is_grantable S"
    ),
    "INFORMATION_SCHEMA.ROLE_ROUTINE_GRANTS": parse_columns(
        "grantor S, grantee S, specific_catalog S, specific_schema S, specific_name S, "
        "routine_catalog S, routine_schema S, routine_name S, privilege_type S, is_grantable "
        "S"
    ),
    "INFORMATION_SCHEMA.ROLE_TABLE_GRANTS": parse_columns(
        "grantor S, grantee S, table_catalog S, table_schema S, table_name S, privilege_type "
        "S, is_grantable S, with_hierarchy S"
    ),
    "INFORMATION_SCHEMA.ROUTINE_OPTIONS": parse_columns(
        "specific_catalog S, specific_schema S, specific_name S, option_name S, option_type "
        "S, option_value S"
    ),
    "INFORMATION_SCHEMA.ROUTINE_PRIVILEGES": parse_columns(
        "grantor S, grantee S, specific_catalog S, specific_schema S, specific_name S, "
        "routine_catalog S, routine_schema S, routine_name S, privilege_type S, is_grantable "
        "S"
    ),
    "INFORMATION_SCHEMA.ROUTINES": parse_columns(
        "specific_catalog S, specific_schema S, specific_name S, routine_catalog S, "
        "routine_schema S, routine_name S, routine_type S, module_catalog S, module_schema S, "
        "module_name S, udt_catalog S, udt_schema S, udt_name S, data_type S, "
        "character_maximum_length I, character_octet_length I, character_set_catalog S, "
        "character_set_schema S, character_set_name S, collation_catalog S, collation_schema "
        "S, collation_name S, numeric_precision I, numeric_precision_radix I, numeric_scale "
        "I, datetime_precision I, interval_type S, interval_precision I, type_udt_catalog S, "
        "type_udt_schema S, type_udt_name S, scope_catalog S, scope_schema S, scope_name S, "
        "maximum_cardinality I, dtd_identifier S, routine_body S, routine_definition S, "
        "external_name S, external_language S, parameter_style S, is_deterministic S, "
        "sql_data_access S, is_null_call S, sql_path S, schema_level_routine S, "
        "max_dynamic_result_sets S, is_user_defined_cast S, is_implicitly_invocable S, "
        "security_type S, to_sql_specific_catalog S, to_sql_specific_schema S, "
        "to_sql_specific_name S, as_locator S, created T, last_altered T, new_savepoint_level "
        "S, is_udt_dependent S, result_cast_from_data_type S, result_cast_as_locator S, "
        "result_cast_char_max_length I, result_cast_char_octet_length I, "
        "result_cast_char_set_catalog S, result_cast_char_set_schema S, "
        "result_cast_char_set_name S, result_cast_collation_catalog S, "
        "result_cast_collation_schema S, result_cast_collation_name S, "
        "result_cast_numeric_precision I, result_cast_numeric_precision_radix I, "
        "result_cast_numeric_scale I, result_cast_datetime_precision I, "
        "result_cast_interval_type S, result_cast_interval_precision I, "
        "result_cast_type_udt_catalog S, result_cast_type_udt_schema S, "
        "result_cast_type_udt_name S, result_cast_scope_catalog S, result_cast_scope_schema "
        "S, result_cast_scope_name S, result_cast_maximum_cardinality I, "
        "result_cast_dtd_identifier S, spanner_type S, spanner_determinism S"
    ),
    "INFORMATION_SCHEMA.SCHEMATA": parse_columns(
        "catalog_name S, schema_name S, schema_owner S, default_character_set_catalog S, "
        "default_character_set_schema S, default_character_set_name S, sql_path S, "
        "effective_timestamp T"
    ),
    "INFORMATION_SCHEMA.SEQUENCES": parse_columns(
        "sequence_catalog S, sequence_schema S, sequence_name S, data_type S, "
        "numeric_precision I, numeric_precision_radix I, numeric_scale I, start_value I, "
        "minimum_value I, maximum_value I, increment I, cycle_option S, sequence_kind S, "
        "counter_start_value I, skip_range_min I, skip_range_max I"
    ),
    "INFORMATION_SCHEMA.SPANNER_STATISTICS": parse_columns(
        "catalog_name S, schema_name S, package_name S, allow_gc S"
    ),
    "INFORMATION_SCHEMA.TABLE_CONSTRAINTS": parse_columns(
        "constraint_catalog S, constraint_schema S, constraint_name S, table_catalog S, "
        "table_schema S, table_name S, constraint_type S, is_deferrable S, initially_deferred "
        "S, enforced S"
    ),
    "INFORMATION_SCHEMA.TABLE_PRIVILEGES": parse_columns(
        "grantor S, grantee S, table_catalog S, table_schema S, table_name S, privilege_type "
        "S, is_grantable S, with_hierarchy S"
    ),
    "INFORMATION_SCHEMA.TABLES": parse_columns(
        "table_catalog S, table_schema S, table_name S, table_type S, "
        "self_referencing_column_name S, reference_generation S, user_defined_type_catalog S, "
        "user_defined_type_schema S, user_defined_type_name S, is_insertable_into S, is_typed "
        "S, commit_action S, parent_table_name S, on_delete_action S, spanner_state S, "
        "interleave_type S, row_deletion_policy_expression S"
    ),
    "INFORMATION_SCHEMA.VIEWS": parse_columns(
        "table_catalog S, table_schema S, table_name S, view_definition S, check_option S, "
        "is_updatable S, is_insertable_into S, is_trigger_updatable S, is_trigger_deletable "
        "S, is_trigger_insertable_into S, security_type S"
    ),
}
