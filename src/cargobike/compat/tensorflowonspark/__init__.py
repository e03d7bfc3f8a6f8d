"""The names of TensorFlowOnSpark over our own calls."""
