"""Features by name: which group owns each, how groups are joined, and the rows, when they are asked for."""
