"""Tasks of a DAG of Airflow, measured from inside; prints one JSON object. Called by `step_overhead.py`."""

import json
import os
import subprocess
import sys
import time

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 5
HOME = os.path.abspath("airflow")
os.environ.update(
    AIRFLOW_HOME=HOME,
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__DAGS_FOLDER=os.path.dirname(os.path.abspath(__file__)),
    AIRFLOW__LOGGING__LOGGING_LEVEL="ERROR",
)
if __name__ == "__main__":
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True, stdout=subprocess.DEVNULL)

from airflow.sdk import DAG, task  # noqa: E402 - it reads its settings when it is imported


@task  # type: ignore[untyped-decorator]
def plain(number: int) -> int:
    """Do nothing."""
    return number


with DAG("chain", schedule=None) as dag:
    made = 0
    for _ in range(STEPS):
        made = plain(made)


def main() -> None:
    begun = time.perf_counter()
    run = dag.test()
    seconds = time.perf_counter() - begun
    assert run.state == "success", run.state
    print(json.dumps({"step in this process ms": 1000 * seconds / STEPS}))


if __name__ == "__main__":
    main()
