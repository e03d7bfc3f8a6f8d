"""How names are found and products register: internal, but for what `cargobike.products` names."""
