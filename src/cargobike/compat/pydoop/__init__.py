"""The names of pydoop that scripts for hops use, over the project's files."""
