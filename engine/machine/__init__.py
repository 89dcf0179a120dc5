"""The conversation machine: states, events, effects and the pure step between them."""
