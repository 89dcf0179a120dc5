"""Agents that work for another: their profiles, starting them and gathering what they bring."""
