"""How tensors of TensorFlow meet those of other ranks: what `horovod.tensorflow` and Keras on TensorFlow share."""
