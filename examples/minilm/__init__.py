"""all-MiniLM-L6-v2 for each door, from its published weights: for examples, benchmarks and tests."""
