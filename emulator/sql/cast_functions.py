"""The functions that convert a value from one type to another: those of CAST."""

from __future__ import annotations

from spanner_schema.model.column_types import TypeCode

# (from, to) -> the SQLite function of CAST; names are registered by emulator.sql.functions.
CASTS = {
    (TypeCode.BOOL, TypeCode.INT64): "",
    (TypeCode.BOOL, TypeCode.STRING): "cast_bool_string",
    (TypeCode.INT64, TypeCode.BOOL): "cast_int64_bool",
    (TypeCode.INT64, TypeCode.FLOAT32): "to_float32",
    (TypeCode.INT64, TypeCode.FLOAT64): "cast_int64_float64",
    (TypeCode.INT64, TypeCode.NUMERIC): "int64_to_numeric",
    (TypeCode.INT64, TypeCode.STRING): "cast_int64_string",
    (TypeCode.FLOAT32, TypeCode.FLOAT64): "",
    (TypeCode.FLOAT64, TypeCode.FLOAT32): "to_float32",
    (TypeCode.FLOAT32, TypeCode.INT64): "cast_float_int64",
    (TypeCode.FLOAT64, TypeCode.INT64): "cast_float_int64",
    (TypeCode.FLOAT32, TypeCode.STRING): "cast_float32_string",
    (TypeCode.FLOAT64, TypeCode.STRING): "cast_float64_string",
    (TypeCode.FLOAT32, TypeCode.NUMERIC): "cast_float_numeric",
    (TypeCode.FLOAT64, TypeCode.NUMERIC): "cast_float_numeric",
    (TypeCode.NUMERIC, TypeCode.INT64): "cast_numeric_int64",
    (TypeCode.NUMERIC, TypeCode.FLOAT32): "numeric_to_float32",
    (TypeCode.NUMERIC, TypeCode.FLOAT64): "numeric_to_float64",
    (TypeCode.NUMERIC, TypeCode.STRING): "cast_numeric_string",
    (TypeCode.STRING, TypeCode.BOOL): "cast_string_bool",
    (TypeCode.STRING, TypeCode.INT64): "cast_string_int64",
    (TypeCode.STRING, TypeCode.FLOAT32): "cast_string_float32",
    (TypeCode.STRING, TypeCode.FLOAT64): "cast_string_float64",
    (TypeCode.STRING, TypeCode.NUMERIC): "cast_string_numeric",
    (TypeCode.STRING, TypeCode.BYTES): "cast_string_bytes",
    (TypeCode.STRING, TypeCode.DATE): "cast_string_date",
    (TypeCode.STRING, TypeCode.TIMESTAMP): "cast_string_timestamp",
    (TypeCode.STRING, TypeCode.UUID): "cast_string_uuid",
    (TypeCode.STRING, TypeCode.INTERVAL): "cast_string_interval",
    (TypeCode.INTERVAL, TypeCode.STRING): "cast_interval_string",
    (TypeCode.UUID, TypeCode.STRING): "",
    (TypeCode.BYTES, TypeCode.STRING): "cast_bytes_string",
    (TypeCode.BYTES, TypeCode.UUID): "cast_bytes_uuid",
    (TypeCode.UUID, TypeCode.BYTES): "cast_uuid_bytes",
    (TypeCode.DATE, TypeCode.STRING): "",
    (TypeCode.DATE, TypeCode.TIMESTAMP): "cast_date_timestamp",
    (TypeCode.TIMESTAMP, TypeCode.STRING): "cast_timestamp_string",
    (TypeCode.TIMESTAMP, TypeCode.DATE): "cast_timestamp_date",
}
