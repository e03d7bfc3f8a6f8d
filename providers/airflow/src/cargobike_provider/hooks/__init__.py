"""The hook: from a connection to Cargobike in a process of its own."""
