"""Language servers that check edited files (docs/decisions/diagnostics.md)."""
