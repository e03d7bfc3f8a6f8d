"""What `horovod.keras` and `horovod.tensorflow.keras` share: today both are the one Keras, on any of its backends."""
