"""Journals: append-only files of facts, one JSON object a line."""

from cargobike.store.journal.journal import JournalReader, JournalWriter, intact_lines, read_header, read_journal, seal

__all__ = ["JournalReader", "JournalWriter", "intact_lines", "read_header", "read_journal", "seal"]
