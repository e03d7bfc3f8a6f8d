"""What the results say, as numbers: no figure, no file, no clock. The rest of `ui` draws it."""
