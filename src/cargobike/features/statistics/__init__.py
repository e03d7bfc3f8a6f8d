"""Statistics of features: states that are made from rows once, kept with them, and merged whenever they are needed.

Merging states gives what one state of all rows would have been: exactly for counts, extremes and distinct values, up to
rounding for means and correlations, within a known error for quantiles. No group and no file is known here.
"""
