"""Training datasets: rows of a view, split and written once, pinned to what they were made from."""
