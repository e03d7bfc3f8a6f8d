"""Processes that run a program on behalf of a driver: host, template, agent, and the wire between them.

Internal: no name of it is public.
"""
