"""Connections between members: proved on both sides, sealed, and carrying typed messages.

`introducing` has both ends show which key they have, over a channel of `training/wire`; `messages` says what can be
said; `member` is one connection, `dialling` makes one, `reception` lets others in.
"""
