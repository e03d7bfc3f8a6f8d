"""TFRecord files without TensorFlow: checksums, framing, and `tf.train.Example` read and written."""
