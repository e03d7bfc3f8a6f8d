"""What `cargobike demo` shows: a search over a small neural network."""
