"""A project's bytes: locks, content kept once, and copies on shared storage."""
