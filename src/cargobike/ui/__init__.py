"""The shell of the dashboard, and pages that stand alone in one file.

It does not know the products: each registers its pages, its REST routes and the files behind them (`web.section`).

Internal: public is `cargobike.dashboard`.
"""
