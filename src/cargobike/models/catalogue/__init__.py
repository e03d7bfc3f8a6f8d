"""What is known of all models of a project: read from the storage once, and from then on only what is new."""
