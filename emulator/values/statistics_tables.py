"""The tables of SPANNER_SYS: names, columns, types."""

from __future__ import annotations

from emulator.values.columns import View, parse_columns
from emulator.values.types import FLOAT64, INT64, STRING, array
from spanner_schema.model.column_types import StructField, Type, TypeCode


def structs(text: str) -> Type:
    """ARRAY<STRUCT<...>> with fields as ``parse_columns`` reads them."""
    fields = tuple(StructField(name, type_) for name, type_ in parse_columns(text))
    return array(Type(TypeCode.STRUCT, fields=fields))


DISTRIBUTION = array(
    Type(
        TypeCode.STRUCT,
        fields=(
            StructField("COUNT", INT64),
            StructField("MEAN", FLOAT64),
            StructField("SUM_OF_SQUARED_DEVIATION", FLOAT64),
            StructField("NUM_FINITE_BUCKETS", INT64),
            StructField("GROWTH_FACTOR", FLOAT64),
            StructField("SCALE", FLOAT64),
            StructField("BUCKET_COUNTS", array(INT64)),
        ),
    )
)
STRINGS = array(STRING)
LOCK_REQUESTS = structs("COLUMN S, LOCK_MODE S, TRANSACTION_TAG S")
OPERATIONS = structs("TABLE_NAME S, INSERT_OR_UPDATE_COUNT I, INSERT_OR_UPDATE_BYTES I")

QUERY_COSTS = (
    "EXECUTION_COUNT I, AVG_LATENCY_SECONDS F, AVG_ROWS F, AVG_BYTES F, AVG_ROWS_SCANNED F,"
    " AVG_CPU_SECONDS F, CANCELLED_OR_DISCONNECTED_EXECUTION_COUNT I, TIMED_OUT_EXECUTION_COUNT I,"
    " ALL_FAILED_EXECUTION_COUNT I, ALL_FAILED_AVG_LATENCY_SECONDS F"
)
QUERY_RESOURCES = parse_columns(
    "AVG_MEMORY_PEAK_USAGE_BYTES F, AVG_MEMORY_USAGE_PERCENTAGE F,"
    " AVG_QUERY_PLAN_CREATION_TIME_SECS F, AVG_FILESYSTEM_DELAY_SECS F, AVG_REMOTE_SERVER_CALLS F,"
    " AVG_ROWS_SPOOLED F, AVG_DISK_IO_COST F"
)
READ_COSTS = (
    "EXECUTION_COUNT I, AVG_ROWS F, AVG_BYTES F, AVG_CPU_SECONDS F, AVG_LOCKING_DELAY_SECONDS F,"
    " AVG_CLIENT_WAIT_SECONDS F, AVG_LEADER_REFRESH_DELAY_SECONDS F"
)
TXN_COSTS = (
    "COMMIT_ATTEMPT_COUNT I, COMMIT_FAILED_PRECONDITION_COUNT I, COMMIT_ABORT_COUNT I,"
    " AVG_PARTICIPANTS F, AVG_TOTAL_LATENCY_SECONDS F, AVG_COMMIT_LATENCY_SECONDS F, AVG_BYTES F,"
    " COMMIT_RETRY_COUNT I"
)
TXN_COUNTS = parse_columns(
    "ATTEMPT_COUNT I, SERIALIZABLE_PESSIMISTIC_TXN_COUNT I, REPEATABLE_READ_OPTIMISTIC_TXN_COUNT I"
)

BY_INTERVAL: dict[str, View] = {
    "QUERY_STATS_TOP": (
        *parse_columns("INTERVAL_END T, TEXT S, TEXT_TRUNCATED B, TEXT_FINGERPRINT I"),
        *parse_columns(QUERY_COSTS),
        *parse_columns("REQUEST_TAG S, AVG_BYTES_WRITTEN F, AVG_ROWS_WRITTEN F, STATEMENT_COUNT I"),
        ("LATENCY_DISTRIBUTION", DISTRIBUTION),
        *parse_columns("RUN_IN_RW_TRANSACTION_EXECUTION_COUNT I, QUERY_TYPE S"),
        *QUERY_RESOURCES,
    ),
    "QUERY_STATS_TOTAL": (
        *parse_columns(f"INTERVAL_END T, {QUERY_COSTS}"),
        *parse_columns("AVG_BYTES_WRITTEN F, AVG_ROWS_WRITTEN F"),
        ("LATENCY_DISTRIBUTION", DISTRIBUTION),
        ("RUN_IN_RW_TRANSACTION_EXECUTION_COUNT", INT64),
        *QUERY_RESOURCES,
    ),
    "QUERY_PROFILES_TOP": parse_columns(
        "INTERVAL_END T, TEXT_FINGERPRINT I, LATENCY_SECONDS F, QUERY_PROFILE S"
    ),
    "READ_STATS_TOP": (
        *parse_columns("INTERVAL_END T"),
        ("READ_COLUMNS", STRINGS),
        *parse_columns(f"FPRINT I, {READ_COSTS}"),
        *parse_columns("REQUEST_TAG S, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT I, READ_TYPE S"),
        ("AVG_DISK_IO_COST", FLOAT64),
    ),
    "READ_STATS_TOTAL": parse_columns(
        f"INTERVAL_END T, {READ_COSTS}, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT I, AVG_DISK_IO_COST F"
    ),
    "TXN_STATS_TOP": (
        *parse_columns("INTERVAL_END T, FPRINT I"),
        ("READ_COLUMNS", STRINGS),
        ("WRITE_CONSTRUCTIVE_COLUMNS", STRINGS),
        ("WRITE_DELETE_TABLES", STRINGS),
        *parse_columns(f"{TXN_COSTS}, TRANSACTION_TAG S"),
        ("OPERATIONS_BY_TABLE", OPERATIONS),
        ("TOTAL_LATENCY_DISTRIBUTION", DISTRIBUTION),
        *TXN_COUNTS,
    ),
    "TXN_STATS_TOTAL": (
        *parse_columns(f"INTERVAL_END T, {TXN_COSTS}"),
        ("OPERATIONS_BY_TABLE", OPERATIONS),
        ("TOTAL_LATENCY_DISTRIBUTION", DISTRIBUTION),
        *TXN_COUNTS,
    ),
    "LOCK_STATS_TOP": (
        *parse_columns("INTERVAL_END T, ROW_RANGE_START_KEY Y, LOCK_WAIT_SECONDS F"),
        ("SAMPLE_LOCK_REQUESTS", LOCK_REQUESTS),
    ),
    "LOCK_STATS_TOTAL": parse_columns("INTERVAL_END T, TOTAL_LOCK_WAIT_SECONDS F"),
    "TABLE_OPERATIONS_STATS": parse_columns(
        "INTERVAL_END T, TABLE_NAME S, READ_QUERY_COUNT I, WRITE_COUNT I, DELETE_COUNT I"
    ),
    "COLUMN_OPERATIONS_STATS": parse_columns(
        "INTERVAL_END T, TABLE_NAME S, COLUMN_NAME S, QUERY_COUNT I, READ_COUNT I, WRITE_COUNT I,"
        " IS_QUERY_CACHE_MEMORY_CAPPED B"
    ),
}
"""Tables that there are for the minute, ten minutes and the hour."""

SINGLE: dict[str, View] = {
    "TABLE_SIZES_STATS_1HOUR": parse_columns(
        "INTERVAL_END T, TABLE_NAME S, USED_BYTES F, USED_SSD_BYTES F, USED_HDD_BYTES F"
    ),
    "TABLE_SIZES_STATS_PER_LOCALITY_GROUP_1HOUR": parse_columns(
        "INTERVAL_END T, TABLE_NAME S, LOCALITY_GROUP S, USED_SSD_BYTES F, USED_HDD_BYTES F"
    ),
    "SPLIT_STATS_TOP_MINUTE": (
        *parse_columns("INTERVAL_END T, SPLIT_START S, SPLIT_LIMIT S"),
        ("AFFECTED_TABLES", STRINGS),
        ("CPU_USAGE_SCORE", INT64),
    ),
    "OLDEST_ACTIVE_QUERIES": parse_columns(
        "START_TIME T, TEXT_FINGERPRINT I, TEXT S, TEXT_TRUNCATED B, SESSION_ID S, QUERY_ID S"
    ),
    "ACTIVE_QUERIES_SUMMARY": parse_columns(
        "ACTIVE_COUNT I, OLDEST_START_TIME T, COUNT_OLDER_THAN_1S I, COUNT_OLDER_THAN_10S I,"
        " COUNT_OLDER_THAN_100S I"
    ),
    "ACTIVE_PARTITIONED_DMLS": parse_columns(
        "TEXT S, TEXT_FINGERPRINT S, SESSION_ID S, NUM_PARTITIONS_TOTAL I,"
        " NUM_PARTITIONS_COMPLETE I, NUM_TRIVIAL_PARTITIONS_COMPLETE I, PROGRESS S,"
        " ROWS_PROCESSED I, START_TIMESTAMP T, LAST_UPDATE_TIMESTAMP T"
    ),
    "ROW_DELETION_POLICIES": parse_columns(
        "TABLE_NAME S, PROCESSED_WATERMARK T, UNDELETABLE_ROWS I, MIN_UNDELETABLE_TIMESTAMP T"
    ),
    "TASKS": parse_columns(
        "TASK_NAME S, PROCESSED_WATERMARK T, LAST_RUN_STATUS S, UNDELETABLE_ROWS I"
    ),
    "SUPPORTED_OPTIMIZER_VERSIONS": parse_columns("VERSION I, RELEASE_DATE D, IS_DEFAULT B"),
    "USER_SPLIT_POINTS": parse_columns(
        "TABLE_NAME S, INDEX_NAME S, INITIATOR S, SPLIT_KEY S, EXPIRE_TIME T"
    ),
}

STATISTICS_TABLES: dict[str, View] = {
    **{
        f"SPANNER_SYS.{name}_{interval}": view
        for name, view in BY_INTERVAL.items()
        for interval in ("MINUTE", "10MINUTE", "HOUR")
    },
    **{f"SPANNER_SYS.{name}": view for name, view in SINGLE.items()},
}
"""All of them. Those of queries and the optimizer's versions have rows; of the others nothing is
known here, and they are empty."""
