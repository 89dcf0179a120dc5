"""Pages from the web: which addresses may be asked, how they are fetched, and how they become text."""
