"""How fast a transfer may be, so that it fills an idle link and gives way to everybody else.

`controller` decides from delays and losses, `limits` from what a user allows at this hour, `division` among peers;
all three are pure. `pacing` reads sockets, asks them, and tells the kernel. `simulated` is a network in virtual time.
Nothing here opens a connection or knows what is sent.
"""
