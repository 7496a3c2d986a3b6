"""Plain models of the two normative texts, written for clarity. They import nothing of the library."""
