"""Inside a worker: what runs a train function, and what the function may call."""
