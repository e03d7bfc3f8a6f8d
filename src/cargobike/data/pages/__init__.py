"""The dashboard page and REST route of tables."""
