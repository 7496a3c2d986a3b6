"""The draw stream of sampling.md, algorithm 1."""
