"""Layer 1: WHAT HAPPENED. Journals, the index over them, files, checkpoints, snapshots.

The truth is the journal in each experiment's own folder: one JSON object per line, appended by the driver of
that experiment alone. Whatever else this room offers is derived from journals and can be thrown away.

Internal: public names are in `cargobike.project`, `cargobike.journals`.
"""
