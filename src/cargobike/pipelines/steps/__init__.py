"""What the author of a pipeline writes: steps, and the results that they will have."""
