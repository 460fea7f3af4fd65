"""Stands in for flash's own worker image, which cannot be fetched here: it unpacks the build and runs the handler that is in it."""

import os
import runpy
import sys
import tarfile

place = os.path.join(os.getcwd(), "app")
with tarfile.open(os.environ["FLASH_BUILD_ARTIFACT_PATH"]) as build:
    build.extractall(place)
os.chdir(place)
sys.path.insert(0, place)
runpy.run_path(f"handler_{os.environ['FLASH_RESOURCE_NAME']}.py", run_name="__main__")
