"""Panes: several live conversations in one screen, side by side or stacked."""
