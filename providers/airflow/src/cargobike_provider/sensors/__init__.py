"""Sensors: wait for an experiment, for rows of a feature group, for an alarm."""
