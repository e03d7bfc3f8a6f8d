"""Programs as people write them for `torchrun`, each a file that knows nothing of Cargobike.

The page "Coming from torchrun, …" names them; its test runs every one of them as a gang.
"""
