"""Rewriting a script for an older library in our own names, where names and arguments are all there is to change."""
