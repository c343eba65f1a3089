"""Models built from published weights, for the examples, benchmarks and tests."""
