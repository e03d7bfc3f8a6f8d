"""The processes of steps: a template that waits, warm, and one fork of it for each attempt."""
