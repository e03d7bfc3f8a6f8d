"""Get a publication: from many members and web servers at once, verified piece by piece, into any place.

`fetch` holds what is had and what is missing, and is told what sources deliver; `from_members` and `from_web` are the
sources; `session` finds members, runs the sources and waits; `handle` is what a user holds meanwhile; `placing` puts
what came into a project's storage, `streaming` into Kafka.
"""
