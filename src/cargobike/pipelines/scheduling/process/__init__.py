"""The scheduler: one small process that asks the policy and does what it says."""
