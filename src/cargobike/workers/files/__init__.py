"""Files that travel between a worker that does not see the project's disk and the driver that does."""
