"""The product that searches, distributes and remembers a train function.

Rooms, from the bottom up: `trial` runs in a worker, `scheduling` decides, `display` shows, `driving` does, `asking`
turns arguments into a request; `index`, `results` and `tensorboard` look back.

Internal: its doors are `cargobike.experiment` and `cargobike.trial`, its records are in `cargobike.results`.
"""
