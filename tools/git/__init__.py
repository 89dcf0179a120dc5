"""What Phoenix itself asks of git, so that nothing a repository contains decides what runs."""
