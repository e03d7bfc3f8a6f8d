"""Layer 1: what runs beside user code.

Four programs of one family, each a process: the *host* (one per machine and experiment, local engine only) imports the
libraries that the train function needs and forks *agents*; an agent talks to the driver and watches; its *template*
forks *runners*, in which user code runs. Whoever dies takes along what it started, and nothing else.
"""
