"""Driving a run: the conductor decides, the driver does."""
