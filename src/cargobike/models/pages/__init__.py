"""Models in the dashboard: pages and answers of the API."""
