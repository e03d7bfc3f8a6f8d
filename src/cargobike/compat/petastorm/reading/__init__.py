"""From row groups to rows and arrays: which groups a reader reads, and how their columns are decoded."""
