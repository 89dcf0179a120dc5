"""Notes that outlast a conversation, and messages that its model no longer sees whole: kept, indexed, searched."""
