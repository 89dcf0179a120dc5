"""Use cases of both front ends: questions, actions and notices, without a widget."""
