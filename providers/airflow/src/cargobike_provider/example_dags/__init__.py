"""An example: from data to a deployment, and what follows when a model was registered."""
