"""Which part of an answer is the code, which candidates are the same, and which one is best."""
