"""Files of other programs that extend Phoenix: skills, commands, hooks, servers. Found and digested, then trusted."""
