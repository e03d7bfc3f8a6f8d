"""`cargobike pipelines`."""
