"""Images made fit for a provider: decoded, turned and shrunk in a limited process of their own."""
