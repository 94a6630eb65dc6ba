"""Hosts, the machines that train: their tables in the settings, ssh, the agent's protocol, and what a host has."""
