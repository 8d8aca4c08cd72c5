"""What the probes of this subject are made of: one module reads one kind of thing."""
