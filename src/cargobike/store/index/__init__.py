"""The index: one database over all journals of a project, in which each product has tables of its own.

This room holds what all products share: opening the database, catching up with journals, making tables again. What the
tables hold, and how they are queried, is up to the product.
"""
