"""Copies a project's folder, so that a build can write beside its files: the folder, the copy."""

import shutil
import sys

source, target = sys.argv[1:]
shutil.copytree(source, target, ignore=shutil.ignore_patterns(".git", "__pycache__"))
