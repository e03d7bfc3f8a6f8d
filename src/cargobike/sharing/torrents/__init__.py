"""Torrent files of what is published, for ordinary clients."""
