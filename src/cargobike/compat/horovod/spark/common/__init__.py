"""What the Estimators of `horovod.spark` share: stores, backends, parameters."""
