"""Tables that were written once and never change: versions of them, their manifests, what they hold.

A table lies below one address, on any storage. Each version is a manifest, `<version>/manifest.json`, that lists
Parquet files beside it; the manifest is created last and only if absent, and is what makes the version visible.
"""
