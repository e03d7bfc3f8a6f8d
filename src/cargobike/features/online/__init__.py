"""Newest rows of groups, kept for look-ups: one SQLite file for each group, one packed row for each key."""
