"""Versions that leave a project and come into one: archives and folders of ours, and folders of MLflow."""
