"""The dashboard's server: a REST API over the store, pages that use it, and who may ask.

It reads journals and the index like everybody else and never talks to a driver; the one thing that it can change is to
ask an experiment to stop, in the way `cargobike stop` does. Needs the extra `ui` (FastAPI, Uvicorn, Jinja2, Plotly).
"""
