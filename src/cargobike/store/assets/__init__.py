"""What all assets share: versions numbered without gaps by several writers, writers' claims, checked manifests."""
