"""Who may run what: modes, rules and the policy that joins them (CONTRACT 6)."""
