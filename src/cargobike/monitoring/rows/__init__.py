"""Rows on their way into a state: which columns are judged, and what each value becomes."""
