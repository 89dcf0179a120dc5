"""Keys: the table of bindings, the user's changes, the order in which they take effect, the present action of Esc."""
