"""Random inputs for everything that parses: `python tests/faults/fuzzing --inputs 1000000 --seed 0`.

`targets` names the parsers, with examples of what they read and the errors they may raise; `mutations` changes
examples, by structure and by bytes; `fuzzer` runs them and keeps inputs that led somewhere new. Any other error, an
input that takes seconds, or one that takes gigabytes, is a mistake: it is saved into `corpus`, which every run begins
with. Plain Python finds what there is to find here: parsers in C are msgspec's and the standard library's, and
what is around them is mostly a matter of types and sizes, which structure-aware mutation reaches in thousands of
inputs. A fuzzer guided by coverage would be one more compiled dependency.
"""
