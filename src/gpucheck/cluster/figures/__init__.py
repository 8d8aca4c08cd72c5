"""What is compared: versions, limits, rates, bandwidths, requirements, baselines."""
