"""The tables of data in the index of a project."""
