"""Environments on disk, with nothing in them but what a probe reads."""

from __future__ import annotations

from pathlib import Path


class Venv:
    """A virtual environment's files: `pyvenv.cfg`, an interpreter that cannot run, and a site folder."""

    def __init__(self, prefix: Path, extra_config: str = "") -> None:
        self.prefix = prefix
        self.site = prefix / "lib" / "python3.11" / "site-packages"
        self.site.mkdir(parents=True)
        self.python = prefix / "bin" / "python"
        self.python.parent.mkdir()
        self.python.write_bytes(b"\x7fELF, not to be run")
        self.python.chmod(0o755)
        (prefix / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = 3.11.9\n{extra_config}")

    def package(self, module: str, files: dict[str, str] | None = None, folder: Path | None = None) -> Path:
        package = (folder or self.site) / module
        for name, text in {"__init__.py": "raise SystemExit('imported')\n", **(files or {})}.items():
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text(text)
        return package

    def metadata(
        self, name: str, version: str, *, text: str | None = None, files: dict[str, str] | None = None
    ) -> Path:
        folder = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        stated = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\nText.\n" if text is None else text
        for file, content in {"METADATA": stated, **(files or {})}.items():
            (folder / file).write_text(content)
        return folder

    def install(self, name: str, version: str, module: str | None = None) -> Path:
        module = module or name.replace("-", "_")
        self.metadata(name, version, files={"RECORD": f"{module}/__init__.py,,\n"})
        return self.package(module)
