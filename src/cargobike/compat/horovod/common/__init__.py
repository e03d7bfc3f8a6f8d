"""What all of `horovod.torch`, `horovod.tensorflow` and `horovod.keras` share."""
