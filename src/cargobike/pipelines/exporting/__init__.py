"""Writes a pipeline that ran for other orchestrators. What runs there is `providers/airflow`, a package of its own."""
