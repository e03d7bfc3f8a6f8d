"""Commands for programs that were written for older libraries."""
