"""Commands that monitoring registers."""
