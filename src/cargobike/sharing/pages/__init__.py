"""The pages and routes of sharing in the dashboard."""
