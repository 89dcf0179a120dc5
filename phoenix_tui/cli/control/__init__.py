"""The control protocol on stdin and stdout, by which hosts such as Claude's agent SDKs drive Phoenix."""
