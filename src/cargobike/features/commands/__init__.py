"""The commands of features."""
