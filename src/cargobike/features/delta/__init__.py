"""Tables in the format of Delta Lake: its log, read and written through the one interface of storage.

The protocol's first reader and second writer version: added files, removed files, the schema. No row of a feature is
known here, and no group.
"""
