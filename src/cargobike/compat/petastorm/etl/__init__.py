"""Making data sets: metadata, and indexes of row groups."""
