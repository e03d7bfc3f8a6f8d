"""Things of a project as assets of Airflow."""
