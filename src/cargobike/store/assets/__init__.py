"""What all assets share: versions that are numbered without gaps by several writers, and the writers' claims."""
