"""Deployments in the dashboard: pages, answers of the API, and the few changes that can be asked for there."""
