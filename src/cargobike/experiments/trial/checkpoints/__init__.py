"""Checkpoints of a trial: whole or sharded, forced to disk beside the training."""
