"""Makes what a wheel has instead of sources: the messages in one file, compiled translations."""

import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_AUTHORED = "src/gpucheck/findings"
_SHIPPED = "gpucheck/log_patterns/messages.json"


def _translations(root: str) -> Any:  # noqa: ANN401  # a module
    """Return the tool that reads the catalogues."""
    sys.path.insert(0, str(Path(root, "tools")))
    return importlib.import_module("translations")


class MessagesHook(BuildHookInterface[Any]):
    """Puts the values of the TOML files into the wheel, by slug; they are checked when loaded."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files and have them included; an editable install reads the TOML files."""
        translations = _translations(self.root)
        if version == "editable":
            translations.compile_all()  # the source tree has none: git ignores them
            return
        files = sorted(Path(self.root, _AUTHORED).glob("*.toml"))
        messages = {
            file.stem.replace("_", "-"): tomllib.loads(file.read_text(encoding="utf-8"))
            for file in files
        }
        self._folder = tempfile.TemporaryDirectory()
        made = Path(self._folder.name, "messages.json")
        made.write_text(json.dumps(messages, ensure_ascii=False, separators=(",", ":")), "utf-8")
        build_data["force_include"][str(made)] = _SHIPPED
        translations.compile_all(Path(self._folder.name))
        for language in translations.LANGUAGES:
            catalogue = str(Path(self._folder.name, f"{language}.mo"))
            build_data["force_include"][catalogue] = f"gpucheck/language/{language}.mo"

    def finalize(self, _version: str, _build_data: dict[str, Any], _artifact: str) -> None:
        """Remove the temporary file."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
