"""Tables in, tensors out: what a train function is fed with, and predictions for tables."""
