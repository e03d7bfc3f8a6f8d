"""The commands of data."""
