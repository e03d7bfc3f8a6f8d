"""The pieces of content: where they lie on this host, and what is had of what is still coming.

`plan` numbers the pieces of a publication, `holdings` remembers what this member can give to others, `arriving` writes
what comes so that a kill loses nothing that was had, `found` looks for what is here already, `window` bounds what lies
here on its way to a storage. What is asked of whom is decided in `swarm`.
"""
