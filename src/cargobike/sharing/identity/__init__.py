"""Who publishes: keys of Ed25519, made on first use, replaced when they must be, and what their text looks like."""
