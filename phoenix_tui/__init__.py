"""What a person meets: the only package that knows a terminal."""
