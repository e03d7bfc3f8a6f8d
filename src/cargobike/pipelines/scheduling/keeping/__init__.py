"""What a project keeps of schedules, on any storage: their states, and which scheduler is at work."""
