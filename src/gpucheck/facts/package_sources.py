"""Where pip, uv and conda of this user are configured to take packages from."""

from typing import Annotated, ClassVar

from gpucheck.facts import Private, Section
from gpucheck.language import say


class PackageSources(Section, frozen=True, kw_only=True):
    """Addresses without logins; ``""`` or ``[]`` if nothing is configured."""

    name: ClassVar[str] = "package_sources"
    subject = say("Where pip, uv and conda of this user are configured to take packages from.")

    pip_index: Annotated[str | None, Private("index")] = None
    """What stands in for PyPI: of ``PIP_INDEX_URL`` or pip's configuration files."""
    pip_extra_indexes: Annotated[list[str] | None, Private("index")] = None
    """Indexes that pip searches as well."""
    pip_constraints: list[str] | None = None
    """The versions to which pip's files of constraints bind packages: ``torch==2.4.0``."""
    uv_index: Annotated[str | None, Private("index")] = None
    """uv's default index; uv does not read pip's configuration."""
    conda_channels: Annotated[list[str] | None, Private("index")] = None
    """The channels of ``.condarc`` in their order: addresses, or names on conda's own servers."""
