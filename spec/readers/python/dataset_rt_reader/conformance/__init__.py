"""The conformance command of vectors/README.md: documents, unit vectors, runner."""
