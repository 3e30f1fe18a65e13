"""Searches hyper-parameters: every cell of an experiment is searched alike, by validation data only."""
