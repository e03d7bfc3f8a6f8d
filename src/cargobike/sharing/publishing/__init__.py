"""Publish: read what a source holds, hash it, sign it, after a person agreed to what becomes visible."""
