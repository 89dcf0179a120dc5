"""An agent for editors over the Agent Client Protocol: the only package that imports the ACP SDK."""
