#!/bin/sh
# Puts everything that an installation without internet needs into one archive: images, chart and files.
#   deploy/offline/bundle.sh ARCHIVE [IMAGE...]
# Without images: Berth of this version and its runner with Python, and PostgreSQL and Caddy as in compose.yaml. It needs Docker; the chart is packed
# with Helm where it is installed, and as a folder in an archive otherwise.
set -eu
archive=${1:?usage: bundle.sh ARCHIVE [IMAGE...]}
shift
deploy=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/^appVersion: *//p' "$deploy/helm/berth/Chart.yaml")
if [ $# -eq 0 ]; then
  set -- "ghcr.io/berth-cloud/berth:$version" "ghcr.io/berth-cloud/runner-python:$version" $(sed -n 's/.*_IMAGE:-\(.*\)}$/\1/p' "$deploy/compose.yaml" | grep -v berth-cloud)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/berth-offline
mkdir -p "$bundle/images" "$bundle/charts"

: >"$bundle/images/list"
for image in "$@"; do
  docker image inspect "$image" >/dev/null 2>&1 || docker pull "$image"
  file=$(printf %s "$image" | tr '/:@' '___').tar
  docker save --output "$bundle/images/$file" "$image"
  echo "$image $file" >>"$bundle/images/list"
done

if command -v helm >/dev/null; then
  helm package "$deploy/helm/berth" --destination "$bundle/charts" >/dev/null
else
  tar -C "$deploy/helm" -czf "$bundle/charts/berth-$version.tgz" berth
fi
cp -R "$deploy/compose.yaml" "$deploy/caddy" "$deploy/nginx" "$deploy/systemd" "$bundle/"
cp "$deploy/offline/load.sh" "$bundle/load.sh"
(cd "$bundle" && find . -type f ! -name SHA256SUMS -exec sha256sum {} + | sort -k 2 >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
tar -C "$work" -czf "$archive" berth-offline
echo "$archive: $# images, chart $version, $(du -h "$archive" | cut -f1)"
