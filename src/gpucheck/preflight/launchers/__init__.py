"""What a launcher says to its tasks: pure functions of the environment."""
