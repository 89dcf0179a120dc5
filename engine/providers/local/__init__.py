"""local: a GGUF file served on loopback by a llama.cpp process of its own (docs/decisions/local-model.md)."""
