"""Experiments in TensorBoard: event files made from journals, and the server."""
