"""What is decided over time: alarms of several windows, change points in a stream of errors, labels that come late."""
