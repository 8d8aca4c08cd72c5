"""What the other tasks do when task 0 is lost: they meet at a deputy, and judge what they see."""
