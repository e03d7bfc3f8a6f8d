"""The dashboard's server: what products registered, the frame around it, and the rules of access.

What it shows is read from journals and the index; it never talks to a driver. Needs the extra `ui` (FastAPI,
Uvicorn, Jinja2, Plotly).
"""
