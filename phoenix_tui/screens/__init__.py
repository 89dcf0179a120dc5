"""The screens: the workspace and the sheets over it."""
