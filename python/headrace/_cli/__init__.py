"""What of the command `headrace` is written in Python."""
