"""What an experiment came to: results, comparisons, reports, exports."""
