"""Workers as processes of this machine: the default engine."""
