"""The process that gives what a project shares to others, and brings news of what they share.

`lock` sees to it that there is one for each project and network, `control` lets commands and pages talk to it over a
Unix socket, `serving` runs it, `limiting` keeps limits from one start to the next, `systemd` prints a unit.
"""
