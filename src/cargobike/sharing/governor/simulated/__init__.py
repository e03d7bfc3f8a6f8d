"""A bottleneck in virtual time: flows of TCP and of ours through one queue, for tests and to try thresholds."""
