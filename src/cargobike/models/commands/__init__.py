"""The commands of models."""
