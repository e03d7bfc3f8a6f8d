"""Optimizers: what to try next, and what to stop."""
