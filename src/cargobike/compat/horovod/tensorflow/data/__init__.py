"""Data for ranks; says what stands in place of the compute service."""
