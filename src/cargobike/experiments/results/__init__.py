"""The outcome of an experiment: results, comparisons, reports, exports."""
