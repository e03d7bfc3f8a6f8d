"""Deployments on Kubernetes: the same specification as manifests, an image to run, and a cluster to apply them to.

`render.py` makes manifests of what was asked for and touches nothing; `dockerfile.py` says how the image is made;
`writing.py` puts both into a folder. `cluster.py` speaks to an API server, `applying.py` creates, rolls and waits.
"""
