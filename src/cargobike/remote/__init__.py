"""A project that another machine serves: what can be asked of it from here, and what it does for callers.

`asking` speaks HTTP, `rooms` are the nouns and verbs of `cargobike.client`, `commands` are commands of the command line
that run where the project is, `pages` are the routes behind them, `mcp` speaks to coding assistants. What is answered
is described in the rooms that answer; nothing here keeps anything in a project but files that callers sent.

Internal: public names are in `cargobike.client`.
"""
