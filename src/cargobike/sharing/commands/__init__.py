"""The commands of sharing."""
