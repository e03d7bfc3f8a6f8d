"""Says on things that a task made which run of which DAG that was."""

from __future__ import annotations

from typing import Any


def tags_of(origin: dict[str, Any]) -> list[str]:
    """Return tags by which a thing is found from the run that made it; those of a task that is not known are none."""
    words = {"airflow-dag": "dag_id", "airflow-run": "run_id", "airflow-task": "task_id"}
    tags = [f"{word}={origin[key]}" for word, key in words.items() if origin.get(key)]
    return [tag[:100] for tag in tags] or ["airflow"]
