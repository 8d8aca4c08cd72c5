"""What only task 0 does: it assigns the ranks, sets the steps and collects the results."""
