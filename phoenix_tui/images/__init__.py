"""Images shown in the terminal: by the kitty protocol, as sixels, else as half blocks."""
