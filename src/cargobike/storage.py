"""Files on any storage: a folder, S3, HDFS, and what installed packages add.

Example:
    >>> from cargobike.storage import open_storage
    >>> storage = open_storage("memory://team")
    >>> storage.write("notes/today.txt", b"beans")
    >>> storage.read("notes/today.txt")
    b'beans'
"""

from cargobike.store.files.storage import Entry, Storage
from cargobike.store.files.storages import open_storage

__all__ = ["Entry", "Storage", "open_storage"]
