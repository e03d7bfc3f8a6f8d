"""Inside a worker: what runs a train function, and what the function may call."""

WORKER_PROGRAM = "cargobike.experiments.trial.program"
"""What an engine starts for the workers of an experiment; named here, because importing it takes time."""
