"""What driver, agent, template and runner say to each other, and the connections that they say it over."""
