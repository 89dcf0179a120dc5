"""Front ends for people: the only package that knows a terminal."""
