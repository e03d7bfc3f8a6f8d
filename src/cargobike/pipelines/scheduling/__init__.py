"""Schedules: when pipelines run by themselves, and the small process that sees to it.

`times/` is the calendar, `policy/` decides (pure: events in, commands out), `keeping/` is what a project keeps of it,
`process/` is the scheduler itself. What a pipeline does is no matter of this room.
"""
