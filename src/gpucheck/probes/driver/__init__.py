"""Probes of the driver: NVML, libcuda, nvidia-smi, kernel modules, device nodes."""
