"""Export of traces to an OpenTelemetry collector: off unless the user switches it on (docs/decisions/history.md)."""
