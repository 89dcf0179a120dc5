"""local: a GGUF on this machine, served on loopback by llama.cpp in a process of its own (LOCAL_MODEL 4)."""
