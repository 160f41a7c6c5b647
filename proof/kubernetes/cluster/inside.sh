#!/usr/bin/env bash
# First process in the namespaces of the cluster: keeps what Kubernetes writes away from the machine, runs a command, and
# takes leave of the processes that lose their parent.
set -euo pipefail

for folder in /run /var/log /var/lib/cni /var/lib/kubelet; do
  mkdir -p "$folder"
  mount -t tmpfs -o mode=755 tmpfs "$folder"
done
mkdir -p /run/netns
# The kubelet sets these, and would set the whole machine's: it gets copies.
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops \
  kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  copy=/run/settings/$setting
  mkdir -p "${copy%/*}"
  cat "/proc/sys/$setting" > "$copy"
  mount --bind "$copy" "/proc/sys/$setting"
done

# The node's only way out leads to a network of clients. Not every kernel has dummy devices.
ip link set lo up
ip netns add clients
ip link add node0 type veth peer name clients0 netns clients
ip address add 10.99.0.1/24 dev node0
ip link set node0 up
in="ip -netns clients"
$in link set lo up
for last in 254 11 12; do $in address add "10.99.0.$last/24" dev clients0; done
$in link set clients0 up
$in route add default via 10.99.0.1
ip route add default via 10.99.0.254

"$@" &
wait $!
