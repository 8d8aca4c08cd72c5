"""What the probes share: one module reads one kind of thing."""
