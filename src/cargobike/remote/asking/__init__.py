"""Asking a server over HTTP: its address, the token, deadlines, what refusals mean. Only the standard library."""
