"""How far windows are from the reference, computed from states alone: pure functions on arrays."""
