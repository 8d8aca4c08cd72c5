"""Who is to blame: pure functions of the results of the steps."""
