"""Phoenix in a browser (`phoenix serve`); needs the extra `serve`."""
