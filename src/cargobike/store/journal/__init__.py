"""Journals: append-only files of facts, one JSON object a line."""

from cargobike.store.journal.journal import JournalReader, JournalWriter, read_header, read_journal
from cargobike.store.journal.lines import intact_lines, seal

__all__ = ["JournalReader", "JournalWriter", "intact_lines", "read_header", "read_journal", "seal"]
