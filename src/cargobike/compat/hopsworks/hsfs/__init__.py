"""The feature store by its newer path, `hopsworks.hsfs`."""
