"""The sections of ``benchmarks.gpu``, one question each."""
