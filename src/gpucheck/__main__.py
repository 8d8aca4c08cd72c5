"""``python -m gpucheck``: the same as the ``gpucheck`` command."""

from gpucheck.cli import main

if __name__ == "__main__":
    main()
