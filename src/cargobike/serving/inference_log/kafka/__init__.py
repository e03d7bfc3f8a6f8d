"""The inference log in a topic of Kafka, with confluent-kafka, an extra.

`sink.py` sends requests, `following.py` reads them, `client.py` has what both need.
"""
