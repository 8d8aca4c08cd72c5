"""Environment files of conda."""

from gpucheck.describe.files.install_commands import CondaSpec, by_conda, conda_spec_of
from gpucheck.describe.files.model import NamedIndex, Pin, Project
from gpucheck.describe.files.readers.requirements import asked_for, lines_of
from gpucheck.describe.files.readers.yaml import Node


def read(nodes: list[Node]) -> Project:
    """Return what conda and its pip install into one environment."""
    dependencies = nodes[0].get("dependencies")
    specs: list[CondaSpec] = []
    pip: list[Pin] = []
    indexes: list[NamedIndex] = []
    for dependency in dependencies.list():
        spec = conda_spec_of(dependency.text, dependency.line)
        if spec is not None:
            specs.append(spec)
        for requirement in dependency.get("pip").list():
            for _number, line in lines_of(requirement.text):
                for found in asked_for(line, requirement.line):
                    if isinstance(found, Pin):
                        pip.append(found)
                    else:
                        indexes.append(found)
    one_install = by_conda(specs, dependencies.line, also=tuple(pip), indexes=tuple(indexes))
    return Project(kind="conda", installs=(one_install,))
