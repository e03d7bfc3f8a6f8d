"""Views: which features a model takes, how they are transformed, the same in training and in serving."""
