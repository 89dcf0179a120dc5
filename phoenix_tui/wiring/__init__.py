"""The only package that knows concrete stores, providers and tools."""
