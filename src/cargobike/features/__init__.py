"""Features for models: groups that are right in time, joined by name, without a server.

Internal until the door has names.
"""
