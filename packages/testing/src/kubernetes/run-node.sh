#!/usr/bin/env bash
# The first process of a node, in namespaces of its own (mount, pid, network, name): prepares mounts and network and runs containerd,
# kubelet, kube-proxy and kube-router. Started by run-cluster.sh.
set -uo pipefail
name=$1 folder=$2 bin=$3 host=$4
node=$folder/$name
read -r _ <"$node/network-ready"
# shellcheck source=/dev/null
. "$node/addresses" # NODE_ADDRESS POD_SUBNET PEERS
mount --make-rprivate / && mount --make-rshared /
hostname "$name"
# Paths that are fixed in kubelet and in the network plugins.
for path in /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers; do
  mkdir -p "$path" "$node/fs$path"
  mount --bind "$node/fs$path" "$path"
done
mkdir -p /run/netns && mount -t tmpfs -o mode=755 tmpfs /run/netns
ip link set lo up
ip link set eth0 up
ip address add "$NODE_ADDRESS/24" dev eth0
ip route add default via "$host"
for peer in $PEERS; do ip route add "${peer#*=}" via "${peer%%=*}"; done
echo 1 >/proc/sys/net/ipv4/ip_forward

keep() { # keep NAME COMMAND...: starts it again whenever it ends
  local log=$node/$1.log
  shift
  while :; do
    "$@" >>"$log" 2>&1 </dev/null
    sleep 1
  done &
}
PATH=$bin:$PATH
socket=$node/run/containerd.sock
keep containerd containerd --config "$node/containerd.toml"
until ctr -a "$socket" version >/dev/null 2>&1; do sleep 0.05; done
for image in "$folder"/images/*.tar; do ctr -a "$socket" -n k8s.io images import "$image" >>"$node/images.log" 2>&1; done
until [ -e "$folder/api-ready" ]; do sleep 0.05; done
keep kubelet kubelet --config="$node/kubelet.yaml" --kubeconfig="$node/kubelet.conf" --hostname-override="$name" --node-ip="$NODE_ADDRESS"
keep kube-proxy kube-proxy --config="$node/proxy.yaml" --hostname-override="$name"
if [ -e "$folder/network-policies" ]; then
  keep kube-router kube-router --kubeconfig="$folder/proxy.conf" --hostname-override="$name" \
    --service-cluster-ip-range="$(cat "$folder/service-subnet")"
fi
while :; do wait -n 2>/dev/null || sleep 1; done
