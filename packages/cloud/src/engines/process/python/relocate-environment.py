"""Puts the path where an environment is now into those of its files that name the one where it was built:
scripts, pyvenv.cfg and links of editable packages.
"""

import os
import sys

built, folder = (os.fsencode(path) for path in sys.argv[1:])


def files_with_paths():
    yield os.path.join(folder, b"pyvenv.cfg")
    for entry in os.scandir(os.path.join(folder, b"bin")):
        yield entry.path
    for parent, _, names in os.walk(os.path.join(folder, b"lib")):
        if os.path.basename(parent) == b"site-packages":
            for name in names:
                if name.endswith(b".pth") or name.startswith(b"__editable__"):
                    yield os.path.join(parent, name)


for path in files_with_paths():
    if os.path.islink(path) or not os.path.isfile(path):
        continue
    with open(path, "rb") as file:
        content = file.read()
    # Programs that are no scripts find their files by themselves.
    if built in content and b"\0" not in content:
        with open(path, "wb") as file:
            file.write(content.replace(built, folder))
