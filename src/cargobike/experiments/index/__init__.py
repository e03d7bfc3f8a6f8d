"""The index over all experiments of a project: tables, queries, catching up with journals."""
