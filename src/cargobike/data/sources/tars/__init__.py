"""WebDataset tar files: their members, found by headers, and what the parts of samples are."""
