"""Environment files of conda."""

from gpucheck.whatif.files.install_commands import by_conda
from gpucheck.whatif.files.model import Index, Pin, Project
from gpucheck.whatif.files.readers import requirements
from gpucheck.whatif.files.readers.yaml import Node


def read(nodes: list[Node]) -> Project:
    """Return what conda and its pip install into one environment."""
    dependencies = nodes[0].get("dependencies")
    specs: list[tuple[str, int]] = []
    pip: list[Pin] = []
    indexes: list[Index] = []
    for one in dependencies.list():
        if one.text:
            specs.append((one.text, one.line))
        for requirement in one.get("pip").list():
            for install in requirements.read(requirement.text + "\ntorch-placeholder").installs:
                pip += [
                    Pin(pin.name, pin.version, requirement.line)
                    for pin in install.pins
                    if pin.name != "torch-placeholder"
                ]
                indexes += [
                    Index(index.address, requirement.line, index.role) for index in install.indexes
                ]
    one_install = by_conda(specs, dependencies.line, also=tuple(pip), indexes=tuple(indexes))
    return Project(kind="conda", installs=(one_install,))
