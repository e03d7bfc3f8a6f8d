"""Running programs for older libraries as they are: `import hops` finds ours, in the program and in its workers."""
