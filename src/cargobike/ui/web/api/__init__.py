"""The REST API, one file for each kind of thing that can be asked for; all paths begin with `/api/v1`."""
