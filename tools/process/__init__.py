"""Programs that run for an agent: started under a supervisor, bounded, and gone when they should be."""
