"""Puts roll call, clients and algorithm together: settings, engine, federated loop, sweeps."""
