"""The driver: the event loop that owns an experiment, and everything that it talks to."""
