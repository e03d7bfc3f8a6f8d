"""Running a command of the command line on the machine that has the project: files there and back, its output."""
