"""Models behind the port `engine.ports.Provider`; only the wiring imports these."""
