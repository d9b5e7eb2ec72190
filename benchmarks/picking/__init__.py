"""The parts of ``benchmarks.humaneval``: who answers, how it is timed, what is kept, and what is made of it."""
