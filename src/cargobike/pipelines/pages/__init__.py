"""The dashboard pages and REST routes of pipelines."""
