"""Rows that are pushed into running functions, in chunks: by tasks of Spark, or by the driver.

Elsewhere in `data` functions pull what they read; here others bring it. `sending` cuts a partition into `chunks` and
gives them to nodes that have room, `receiving` listens in a node, `inbox` holds what came until the function takes it
and sends results back. Both ends prove that they know the node's secret before anything else is said.
"""
