"""What a distributed train function may use inside a rank: data-parallel training, parameter servers.

Ranks find each other through the environment variables of `torchrun`; outside a gang everything here is rank
0 of 1. Starting ranks, and what happens when one is lost, belongs to `driver` and `worker`. Files that import a
framework are reached only through the doors `cargobike.torch` and `cargobike.keras`.

Internal: public names are in `cargobike.torch`, `cargobike.keras`.
"""
