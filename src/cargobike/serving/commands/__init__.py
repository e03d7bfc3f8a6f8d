"""Commands about deployments."""
