"""Conversations without a screen: machine, executor, context, providers, store."""
