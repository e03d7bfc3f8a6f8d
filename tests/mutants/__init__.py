"""Small mistakes made on purpose, to see whether the unit tests notice: `python tests/mutants --only journal --seed 0`.

`mutations` makes the mistakes: a comparison turned round, a constant off by one, a statement left out. `table` names
the modules where a mistake would cost users most, with the tests that must notice it. `trying` runs those tests against
each mutant, in a copy of the process that has imported and collected them; a mutant that passes them all has survived,
and is printed.

A library such as mutmut or cosmic-ray starts a new pytest for each mutant, which costs more than most of the tests.
"""
