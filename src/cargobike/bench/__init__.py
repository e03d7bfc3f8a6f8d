"""`cargobike bench`: how fast this machine, or cluster, trains in each of the ways that Cargobike knows.

Internal: public is the command `cargobike bench`.
"""
