#!/bin/sh
# Makes the two base images of deploy/docker/Dockerfile under their own names, from Debian packages: where tests run,
# nothing can be pulled. Root file systems are kept in ~/.cache/berth.
#   base-images.sh NODE        the Node program of the build image; npm is that of this machine
set -eu
node=$1
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth
base=$cache/debian-bookworm-slim.tar
mkdir -p "$cache"
if [ ! -f "$base" ]; then
  # As Debian's slim images: no documentation, no translations, no package lists, and of Perl its base alone.
  mmdebstrap --quiet --variant=apt \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*' \
    --customize-hook='rm -rf "$1"/usr/share/perl "$1"/usr/lib/*-linux-gnu/perl "$1"/usr/lib/*-linux-gnu/libperl.*' \
    bookworm "$cache/debian-$$.tar"
  mv "$cache/debian-$$.tar" "$base"
fi
docker import "$base" debian:bookworm-slim >/dev/null

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin"
cp "$node" "$work/bin/node"
cp -R "$npm" "$work/npm"
cp /etc/ssl/certs/ca-certificates.crt "$work/ca.crt"
# The certificates of this machine: its registry may be behind an authority of its own.
cat >"$work/Dockerfile" <<'END'
FROM debian:bookworm-slim
COPY bin/node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
COPY ca.crt /etc/ssl/certs/ca-certificates.crt
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
END
DOCKER_BUILDKIT=0 docker build --quiet -t node:24-bookworm-slim "$work" >/dev/null
