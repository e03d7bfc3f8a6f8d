"""Layer 5: contract suites and fault tools for people who write their own engine, store, optimizer, flavour or trigger.

Subclass a suite in a test file of your own, say how to make the thing, and pytest runs the tests that ours pass.
Public are `engines`, `flavours`, `journals`, `optimizers`, `storages`, `stores`, `triggers`, each with its `__all__`.
Nothing else in the package imports this room.
"""

__all__ = ["engines", "flavours", "journals", "optimizers", "storages", "stores", "triggers"]
