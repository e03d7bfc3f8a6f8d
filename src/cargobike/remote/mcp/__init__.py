"""A server of the Model Context Protocol: coding assistants list, read, explain and, if allowed, launch.

`protocol.py` is pure: messages in, replies and calls out. `serving.py` reads and writes lines. `tools.py` has what an
assistant can call; each is made of commands of the command line, which `running.py` runs here or on a server.
"""
