"""The names of older libraries over our own calls: hops, Hopsworks, Maggy, Horovod, TensorFlowOnSpark, Petastorm.

Import `cargobike.compat.<library>` where a script imported `<library>`, or leave the script as it is and start it with
`python -m cargobike.compat script.py`.
"""

from __future__ import annotations

__all__: list[str] = []
