"""Going back: what each turn changed, what a rewind would do, doing it, and taking it back."""
