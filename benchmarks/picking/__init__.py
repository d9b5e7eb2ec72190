"""The parts of ``benchmarks.humaneval``: who answers, how it is timed, the records, and the tables made from them."""
