"""Share datasets and models with others, in private networks. The modules of this room are internal."""
