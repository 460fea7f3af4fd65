"""Writes the dependencies of a pyproject.toml as a requirements file: pyproject.toml, requirements file."""

import sys

try:
    import tomllib
except ImportError:
    # Python 3.10 and older: pip brings its own copy.
    from pip._vendor import tomli as tomllib

source, target = sys.argv[1:]
with open(source, "rb") as file:
    try:
        project = tomllib.load(file).get("project", {})
    except tomllib.TOMLDecodeError as error:
        sys.exit(f"error: pyproject.toml is not valid TOML: {error}")
if "dependencies" in project.get("dynamic", []):
    sys.exit("error: pyproject.toml has dynamic dependencies but no [build-system] that could compute them")
with open(target, "w", encoding="utf-8") as file:
    file.writelines(f"{requirement}\n" for requirement in project.get("dependencies", []))
