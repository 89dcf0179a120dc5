"""Questions of Phoenix itself to git, run so that the contents of a repository cannot start a program."""
