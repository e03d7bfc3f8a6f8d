"""Figures as data: each function takes an experiment and returns what Plotly draws, `{"data": …, "layout": …}`.

No function here imports Plotly, so a page can send figures to a browser that has its own. `ui.plots` turns them into
figure objects for notebooks.
"""
