"""What was run, with which code, in which environment; archives of it; what people wrote about it."""
