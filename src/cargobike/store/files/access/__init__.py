"""One attempt at a time: how each kind of storage is spoken to, a file for each."""
