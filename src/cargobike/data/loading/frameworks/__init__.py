"""A loader as what frameworks take: datasets of torch, Keras and TensorFlow, each loaded when it is asked for."""
