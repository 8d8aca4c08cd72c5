"""What every task does: its supervisor, what it knows of its node, its workers in each step."""
