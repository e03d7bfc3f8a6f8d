"""What a person sees while an experiment runs: terminal, notebook, plain lines."""
