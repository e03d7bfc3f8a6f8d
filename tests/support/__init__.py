"""What tests share: imported as `support.…`, with the folder `tests` on the path."""
