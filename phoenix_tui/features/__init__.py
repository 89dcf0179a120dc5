"""Use cases of both front ends: what is asked, done and said, without a widget."""
