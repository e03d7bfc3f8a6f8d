"""Deciding when a schedule sets off a run: pure, with time inside events."""
