"""One folder per operation: the plain-torch twin that is the readable truth, and the Triton kernel beside it."""
