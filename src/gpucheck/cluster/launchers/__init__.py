"""What a launcher tells its tasks: pure functions of the environment."""
