"""The formats of a pre-flight: one file is one format; the rest is what the formats share."""

FORMATS = {
    "json": "gpucheck.cluster.pages.bundle",
    "markdown": "gpucheck.cluster.pages.markdown",
    "junit": "gpucheck.cluster.pages.junit",
    "html": "gpucheck.cluster.pages.html",
}
"""The formats of a pre-flight other than the terminal's, each with the module that renders it."""
