#!/bin/sh
# Loads the images of an offline bundle into the Docker daemon of this machine, and pushes them to a registry if one is named.
#   ./load.sh [REGISTRY/PATH]
set -eu
cd "$(dirname "$0")"
sha256sum --check --quiet SHA256SUMS
registry=${1:-}
while read -r image file; do
  docker load --quiet --input "images/$file"
  [ -n "$registry" ] || continue
  target=$registry/${image##*/}
  docker tag "$image" "$target"
  docker push "$target"
done <images/list
