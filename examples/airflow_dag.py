"""An Airflow DAG: every ten minutes a Spark job takes what has changed since its last run.

The job ends when it has delivered that.

Put it into Airflow's folder of DAGs, with your names in ``COMMAND``. It is written for Airflow 3.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

COMMAND = (
    "spark-submit /jobs/upsert_parquet.py"
    " my-project my-instance my-database Singers SingerId /data/singers --until-now"
)

with DAG(
    dag_id="singers_to_parquet",
    schedule=timedelta(minutes=10),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    # A run takes everything since the one before it: a missed run needs no other.
    catchup=False,
    # Two queries cannot share a checkpoint: the second one would be refused.
    max_active_runs=1,
    # A run that died continues from its checkpoint.
    default_args={"retries": 3, "retry_delay": timedelta(minutes=1)},
):
    BashOperator(task_id="take_changes", bash_command=COMMAND)
