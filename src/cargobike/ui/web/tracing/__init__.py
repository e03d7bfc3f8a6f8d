"""Lineage in the dashboard: edges of all products, kept for a moment, drawn as a graph, walked from page to page."""
