"""What processes say of each other: an engine and its host, how something ended, a member and its gang. Internal."""
