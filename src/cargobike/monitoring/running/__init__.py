"""The process that watches: it follows a log, judges, and keeps facts so that `kill -9` loses and doubles nothing."""
