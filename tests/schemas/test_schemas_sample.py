"""A few small schemas of others, the whole way; ``make schemas`` takes all of them."""

from __future__ import annotations

import pytest
from golden.folder import FOLDER
from google.cloud.spanner_v1.instance import Instance

from schemas.cases import read_case
from schemas.run import judge
from schemas.way import ENGINES

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"the case files of other projects are not in {FOLDER}"
)
SAMPLE = (
    "DataflowTemplates_v1_ImportPipelineIT_googlesql_spanner_gsql_ddl_sql",
    "DataflowTemplates_v1_ImportPipelineIT_postgres_spanner_pg_ddl_sql",
    "DataflowTemplates_v2_datastream_to_spanner_EndToEndTesting_NonShardedMigration_spanner_schema_sql",
)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_schema_of_others_holds_the_whole_way(name: str, instance: Instance) -> None:
    outcome = judge(read_case(FOLDER, name), instance, 1, ENGINES)
    assert outcome.holds, outcome.problems
    assert outcome.counts["changes delivered"]
    assert outcome.counts["rows copied"]
