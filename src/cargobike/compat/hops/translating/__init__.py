"""How calls of hops become calls of ours: where they run, what they take, what they return, and where files lie."""
