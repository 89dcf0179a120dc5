"""Several conversations in one screen, side by side or stacked, all of them live."""
