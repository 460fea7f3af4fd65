#!/bin/sh
# Makes images of PostgreSQL and Caddy from Debian packages, with the parts of the public images that deploy/compose.yaml
# relies on: where tests run, nothing can be pulled. Needs debian:bookworm-slim (base-images.sh).
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/postgres.sh" <<'END'
#!/bin/sh
# The first start creates the cluster, the user and the database, as the public image does.
set -eu
data=/var/lib/postgresql/data
if [ ! -f "$data/PG_VERSION" ]; then
  install -d -o postgres -g postgres -m 0700 "$data"
  printf %s "$POSTGRES_PASSWORD" >/run/password
  chown postgres /run/password
  su postgres -c "initdb -D $data -U $POSTGRES_USER --pwfile=/run/password --auth-host=scram-sha-256 --auth-local=trust"
  rm /run/password
  echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
  su postgres -c "printf 'create database $POSTGRES_DB;\n' | postgres --single -D $data template1" ||
    exit 1
fi
exec su postgres -c "exec postgres -D $data -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql"
END
chmod +x "$work/postgres.sh"
cat >"$work/postgres.Dockerfile" <<'END'
FROM debian:bookworm-slim
RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql \
  && rm -rf /var/lib/apt/lists/* && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/ 2>/dev/null || true
COPY postgres.sh /usr/local/bin/start-postgres
CMD ["start-postgres"]
END
cat >"$work/caddy.Dockerfile" <<'END'
FROM debian:bookworm-slim
RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends caddy && rm -rf /var/lib/apt/lists/*
ENV XDG_DATA_HOME=/data XDG_CONFIG_HOME=/config
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
END
for name in postgres caddy; do
  DOCKER_BUILDKIT=0 docker build --quiet --network=host -f "$work/$name.Dockerfile" -t "berth-test-$name" "$work" >/dev/null
done
