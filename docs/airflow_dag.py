"""A schedule of a store for Apache Airflow 3: each day's crawl is added, and the store is compacted each Sunday."""

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

ROOT = "/srv/dedup"
JOB = f"cd {ROOT} && .venv/bin/python jobs/"

with DAG(
    "dedup",
    schedule="30 2 * * *",
    start_date=datetime(2026, 1, 1),
    # One run at a time may write to a store; a day that is run again changes nothing once it is in.
    max_active_runs=1,
    catchup=True,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=10)},
):
    BashOperator(
        task_id="add",
        bash_command=JOB + "dedup.py --config conf/dedup.toml --input 'crawl/{{ ds }}' --store store --batch '{{ ds }}'",
    )

with DAG("compact_store", schedule="0 5 * * 0", start_date=datetime(2026, 1, 1), max_active_runs=1, catchup=False):
    BashOperator(task_id="compact", bash_command=JOB + "compact.py --store store --keep-versions 7", retries=2)
