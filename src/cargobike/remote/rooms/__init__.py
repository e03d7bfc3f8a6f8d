"""The nouns and verbs of `cargobike.client`: one room for each product, with the names that its door has."""
