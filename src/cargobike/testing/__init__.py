"""Layer 4: contract suites and fault tools for people who write their own engine, store or optimizer.

Subclass a suite in a test file of your own, say how to make the thing, and pytest runs the tests that ours pass.
Nothing else in the package imports this room.
"""
