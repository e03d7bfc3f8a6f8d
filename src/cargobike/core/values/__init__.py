"""Numbers and plain data: reading them, packing them for journals, words for people. Internal."""
