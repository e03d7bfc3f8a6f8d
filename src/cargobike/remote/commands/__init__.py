"""Commands that run where the project is: what is allowed, the process of one, and those that run now."""
