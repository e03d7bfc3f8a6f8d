"""From what a user asked for to an experiment that is checked, complete and about to run."""
