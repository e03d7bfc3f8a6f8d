"""Layer 1: WHAT HAPPENED. Journals, the index over them, files, snapshots, and copies on shared storage.

The truth is the journal in each experiment's own folder: one JSON object per line, appended by the driver of
that experiment alone. The index is derived from journals and can be deleted.

Internal: public names are in `cargobike.project`, `cargobike.journals`.
"""
