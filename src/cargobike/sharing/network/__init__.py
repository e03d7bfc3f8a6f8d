"""Who belongs together: the name of a network, its secret or list of keys, and where its members can be reached.

`network` holds what every member must know, `peers` what is known of the others, `beacons` finds those on the same
link, `rendezvous` is a member that only introduces others. No address is contacted that no user or member has named.
"""
