"""Readers convert what somebody wrote into the same sections of facts that the probes fill."""
