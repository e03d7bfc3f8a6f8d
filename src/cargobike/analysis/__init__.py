"""Numbers and figures about experiments; no web, no file."""
