"""The index: one database over all journals of a project, in which each product has tables of its own.

Here is what all products share: opening the database, catching up with journals, making tables anew. What the tables
hold, and what is asked of them, is the product's.
"""
