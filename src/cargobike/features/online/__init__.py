"""Newest rows of groups, kept for look-ups: one packed row for each key, in a store of `stores/`."""
