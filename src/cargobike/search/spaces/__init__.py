"""Search spaces: parameters, scales, conditions, and the file formats they are read from."""
