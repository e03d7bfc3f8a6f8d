"""The program that does Cargobike's part of a task, in a process of its own and the Python that has Cargobike.

Airflow never imports this folder, and nothing in it imports Airflow: only Python's library and public names of
Cargobike. Requests and answers are lines of JSON, so that neither side unpickles what the other has written.
"""
