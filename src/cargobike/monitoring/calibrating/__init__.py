"""How far windows are from the reference by chance alone, at their size: what turns a distance into an alarm."""
