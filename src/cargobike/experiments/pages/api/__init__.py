"""REST routes of experiments."""
