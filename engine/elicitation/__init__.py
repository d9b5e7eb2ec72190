"""Tests that nobody had to write: where candidates disagree on an input, the right answer is asked for.

Pure: it decides on which inputs the candidates are to be run, takes in what the runner's boxes observed, and says which
question to ask next and what an answer is as a test. Nothing that a model wrote is executed here.
"""
