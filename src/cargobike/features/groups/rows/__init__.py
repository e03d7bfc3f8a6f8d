"""Rows on their way into a group: read from what was given, made to fit, checked, compared, put aside."""
