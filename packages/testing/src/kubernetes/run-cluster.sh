#!/usr/bin/env bash
# Runs a cluster until its standard input ends, and then ends and removes everything of it, so that nothing is left however the
# process that started it ends. The files in $folder were written by kubernetes-cluster.ts.
#   run-cluster.sh FOLDER BIN BRIDGE HOST_ADDRESS NODES
set -uo pipefail
folder=$1 bin=$2 bridge=$3 host=$4 nodes=$5
here=$(cd "$(dirname "$0")" && pwd)
pki=$folder/pki
cgroup=berth-test-$bridge
daemons=()

keep() { # keep NAME START...: START begins it in the background of this shell. When it ends it is begun again, unless a file NAME.held is there.
  local name=$1
  shift
  (
    set +u
    trap 'kill -KILL "$!" 2>/dev/null; wait; exit' TERM
    while :; do
      while [ -e "$folder/$name.held" ]; do sleep 0.05; done
      "$@"
      echo "$!" >"$folder/$name.pid"
      wait "$!"
      sleep 0.2
    done
  ) &
  daemons+=("$!")
}
begin() { # begin NAME COMMAND...: with its output in a file
  local name=$1
  shift
  "$@" >>"$folder/$name.log" 2>&1 </dev/null &
}
run() { keep "$1" begin "$@"; }

boot() { # boot INDEX: the machine of a node, with its cable to the bridge
  local i=$1 name=node-$1 NODE_ADDRESS POD_SUBNET PEERS unshared first=
  # shellcheck source=/dev/null
  . "$folder/$name/addresses"
  rm -rf --one-file-system "$folder/$name/run" "$folder/$name/network-ready"
  mkdir "$folder/$name/run"
  mkfifo "$folder/$name/network-ready"
  ip link delete "${bridge}n$i" 2>/dev/null
  begin "$name" unshare --mount --pid --net --uts --fork --kill-child=KILL --mount-proc \
    bash "$here/run-node.sh" "$name" "$folder" "$bin" "$host"
  unshared=$!
  for _ in $(seq 200); do
    read -r first _ <"/proc/$unshared/task/$unshared/children"
    [ -n "$first" ] && [ "$(readlink "/proc/$first/ns/net")" != "$(readlink /proc/self/ns/net)" ] && break
    sleep 0.02
  done
  ip link add "${bridge}n$i" type veth peer name eth0 netns "$first"
  ip link set "${bridge}n$i" master "$bridge" up
  ip route replace "$POD_SUBNET" via "$NODE_ADDRESS" dev "$bridge"
  echo >"$folder/$name/network-ready"
}

rule() { iptables -w "$1" FORWARD "$2" "$bridge" -m comment --comment "$cgroup" -j ACCEPT; }

clean_up() {
  trap '' TERM INT HUP
  # The end of a node's first process ends every process in its namespaces, containers included.
  for pid in "${daemons[@]}"; do kill -TERM "$pid" 2>/dev/null; done
  wait
  rule -D -i 2>/dev/null
  rule -D -o 2>/dev/null
  ip link delete "$bridge" 2>/dev/null
  for group in /sys/fs/cgroup/*/"$cgroup" /sys/fs/cgroup/"$cgroup"; do
    [ -d "$group" ] || continue
    for _ in $(seq 50); do
      find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
      [ -d "$group" ] || break
      sleep 0.1
    done
  done
  while read -r _ place _; do case $place in "$folder"/*) umount -l "$place" ;; esac; done </proc/mounts
  rm -rf --one-file-system "$folder"
}
trap clean_up EXIT
trap 'exit 1' TERM INT HUP

ip address add "$host/24" dev "$bridge" && ip link set "$bridge" up || exit 1
ip address add "$(cat "$folder/public-address")/32" dev "$bridge"
sysctl -qw net.ipv4.ip_forward=1 2>/dev/null || echo 1 >/proc/sys/net/ipv4/ip_forward
# Docker sets the chain's policy to DROP.
rule -I -i
rule -I -o

run etcd "$bin/etcd" --name main --data-dir "$folder/etcd" --unsafe-no-fsync --log-level warn \
  --listen-client-urls "https://$host:2379" --advertise-client-urls "https://$host:2379" \
  --listen-peer-urls "http://$host:2380" --initial-advertise-peer-urls "http://$host:2380" --initial-cluster "main=http://$host:2380" \
  --cert-file "$pki/apiserver.crt" --key-file "$pki/apiserver.key" --client-cert-auth --trusted-ca-file "$pki/ca.crt"
run apiserver "$bin/kube-apiserver" --etcd-servers="https://$host:2379" --etcd-cafile="$pki/ca.crt" \
  --etcd-certfile="$pki/admin.crt" --etcd-keyfile="$pki/admin.key" --bind-address="$host" --advertise-address="$host" --secure-port=6443 \
  --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
  --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$pki/sa.pub" \
  --service-account-signing-key-file="$pki/sa.key" --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
  --service-cluster-ip-range="$(cat "$folder/service-subnet")" --kubelet-preferred-address-types=InternalIP \
  --kubelet-client-certificate="$pki/admin.crt" --kubelet-client-key="$pki/admin.key" --kubelet-certificate-authority="$pki/ca.crt"

for ((i = 0; i < nodes; i++)); do
  for controller in cpu cpuacct cpuset memory devices freezer blkio pids systemd; do
    [ -d "/sys/fs/cgroup/$controller" ] && mkdir -p "/sys/fs/cgroup/$controller/$cgroup/node-$i"
  done
  # Version 1: children of a cpuset begin empty.
  for group in "$cgroup" "$cgroup/node-$i"; do
    for file in cpuset.cpus cpuset.mems; do
      [ -e "/sys/fs/cgroup/cpuset/$group/$file" ] && cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/$group/$file"
    done
  done
  [ -e /sys/fs/cgroup/cgroup.controllers ] && mkdir -p "/sys/fs/cgroup/$cgroup/node-$i"
  keep "node-$i" boot "$i"
done

read -r _ || exit 0 # the API server answers
# Thousands of simulated pods need more requests per second than the default, and renew their leases seldom.
grace=20s rates=()
if [ -e "$folder/kwok.yaml" ]; then grace=300s rates=(--kube-api-qps=500 --kube-api-burst=1000); fi
# Not before: both end without the roles that the API server creates.
run controllers "$bin/kube-controller-manager" --kubeconfig="$folder/controllers.conf" --bind-address="$host" --leader-elect=false \
  --authentication-kubeconfig="$folder/controllers.conf" --authorization-kubeconfig="$folder/controllers.conf" \
  --use-service-account-credentials=true --root-ca-file="$pki/ca.crt" --service-account-private-key-file="$pki/sa.key" \
  --allocate-node-cidrs=false --node-monitor-period=2s --node-monitor-grace-period=$grace --enable-hostpath-provisioner=true \
  --pvclaimbinder-sync-period=2s "${rates[@]}"
run scheduler "$bin/kube-scheduler" --kubeconfig="$folder/scheduler.conf" --bind-address="$host" --leader-elect=false \
  --authentication-kubeconfig="$folder/scheduler.conf" --authorization-kubeconfig="$folder/scheduler.conf" "${rates[@]}"
# It plays the kubelets of nodes that are objects only, and their pods.
if [ -e "$folder/kwok.yaml" ]; then
  # One for each log that is followed.
  sysctl -qw fs.inotify.max_user_instances=65536 fs.inotify.max_user_watches=1048576 2>/dev/null
  # It stands for other machines: what is measured does not wait for it.
  run kwok nice -n 10 "$bin/kwok" --kubeconfig="$folder/admin.conf" --config="$folder/kwok.yaml" --manage-all-nodes=false \
    --manage-nodes-with-label-selector=type=kwok --cidr="$(cat "$folder/kwok-subnet")" --node-ip="$host" --node-port=10247 \
    --server-address="$host:10247" --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --node-lease-duration-seconds=200
fi
if [ -x "$bin/coredns" ]; then run coredns "$bin/coredns" -conf "$folder/Corefile"; fi
touch "$folder/api-ready"
read -r _
