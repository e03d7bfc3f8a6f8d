"""Labels that come late: kept as numbered files, joined with predictions, turned into errors over time."""
