"""Rules about project files; each returns its complaints, and is silent without certainty."""
