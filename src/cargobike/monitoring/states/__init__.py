"""What is kept of rows: states of a size that does not depend on their number, which can be merged and stored.

A layout, learned from the reference, says what a state counts; states of one layout can be added up in any order.
"""
