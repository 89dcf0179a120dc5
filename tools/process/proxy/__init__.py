"""The proxy by which sandboxed commands reach single hosts: a bare interpreter with the lightest modules only."""
