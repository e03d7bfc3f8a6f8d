"""What optimizers are built from: densities, rungs, fronts, samplers."""
