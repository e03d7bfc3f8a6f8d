"""Stop rules: when a running trial is not worth finishing."""
