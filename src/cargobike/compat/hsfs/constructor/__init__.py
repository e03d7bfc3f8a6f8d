"""Queries and the conditions in them."""
