"""Transfers files between the driver and workers on which the project's disk is not mounted."""
