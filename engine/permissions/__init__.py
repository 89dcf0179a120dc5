"""Permissions: modes, rules and the policy that combines them (CONTRACT 6)."""
