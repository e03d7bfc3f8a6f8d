"""Triggers: what sensors wait for in the triggerer, without a worker."""
