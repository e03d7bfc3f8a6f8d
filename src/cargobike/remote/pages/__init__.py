"""The routes of commands that run for callers on other machines; there are no pages."""
