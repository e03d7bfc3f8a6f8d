"""Values of steps: how they are kept, fingerprinted and passed on; and fingerprints of code."""
