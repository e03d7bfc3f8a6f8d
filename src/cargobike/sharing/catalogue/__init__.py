"""What is published in a network: verified records in SQLite, found by words; and who is trusted."""
