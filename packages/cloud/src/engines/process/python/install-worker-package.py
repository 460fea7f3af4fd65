"""Puts Berth's worker SDK into this environment: its folder, its version.

Handlers find ``berth_worker`` without naming it, as TypeScript handlers find their SDK, and a requirement of it is
met. RECORD lists the files, so that pip and uv can replace it with another version.
"""

import os
import shutil
import sys
import sysconfig

folder, version = sys.argv[1:]
if sys.version_info < (3, 10):
    sys.exit(0)
site = sysconfig.get_path("purelib")
target = os.path.join(site, "berth_worker")
info = os.path.join(site, f"berth_worker-{version}.dist-info")
shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__"))
os.mkdir(info)
for name, text in {
    "METADATA": f"Metadata-Version: 2.1\nName: berth-worker\nVersion: {version}\n",
    "INSTALLER": "berth\n",
    "RECORD": "",
}.items():
    with open(os.path.join(info, name), "w", encoding="utf-8") as file:
        file.write(text)
with open(os.path.join(info, "RECORD"), "w", encoding="utf-8") as file:
    for top in (target, info):
        for parent, _, names in os.walk(top):
            file.writelines(f"{os.path.relpath(os.path.join(parent, name), site)},,\n" for name in sorted(names))
