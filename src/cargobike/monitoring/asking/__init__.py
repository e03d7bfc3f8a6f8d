"""What a user asks for: checked, all mistakes at once, and written down."""
