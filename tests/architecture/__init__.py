"""The law of the house, and whether the house keeps it."""
