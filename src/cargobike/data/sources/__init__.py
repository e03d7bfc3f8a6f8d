"""What tables can be read from: each a `Source`, rows in groups that are read one by one."""
