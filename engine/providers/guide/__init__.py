"""demo/guide: a rule-based agent with real tools, for when no model is there (SPEC CARD-05)."""
