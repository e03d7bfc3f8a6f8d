"""An engine in virtual time, for tests and for judging optimizers."""
