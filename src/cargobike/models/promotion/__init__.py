"""Aliases that move to a version, and what it has to pass before."""
