"""What a user gives to be written, as a stream of rows of one schema: frames, rows, arrays, files."""
