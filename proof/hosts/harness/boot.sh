#!/bin/bash
# The world around one test host, as PID 1 of namespaces of its own (network, mounts, processes, control groups): a
# bridge `lan` with the outside's addresses, and a Debian that boots when a line on standard input says so. A reboot
# of it comes back by itself; any other end is reported on standard output.
# boot.sh ROOT TREE MACHINE OUTSIDE_ADDRESS...
set -euo pipefail
root=$1 tree=$2 machine=$3
shift 3

# What the host writes is in a layer over the tree that all of them share; on file systems that have no layers it gets a
# tree of its own. A loss of power is one of the host, not of this machine: nothing has to wait for the disk.
mkdir "$root" "$root.written" "$root.work"
mount -t overlay overlay "$root" -o "lowerdir=$tree,upperdir=$root.written,workdir=$root.work,volatile" 2> /dev/null ||
  cp -a --reflink=auto "$tree/." "$root"

# Hosts have the same names in here and do not see each other; a machine with the older control groups is given the
# newer ones, as current Debian has them.
mount -t tmpfs none /run/systemd
umount --recursive --lazy /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
# A group with processes of its own cannot pass controllers on: everybody moves into a group below.
mkdir /sys/fs/cgroup/world /sys/fs/cgroup/machine
echo $$ > /sys/fs/cgroup/world/cgroup.procs
for controller in $(< /sys/fs/cgroup/cgroup.controllers); do
  echo "+$controller" > /sys/fs/cgroup/cgroup.subtree_control
done

ip link set lo up
ip link add lan type bridge
ip link set lan up
for address in "$@"; do
  case $address in
    *:*) ip address add "$address" dev lan nodad ;;
    *) ip address add "$address" dev lan ;;
  esac
done

# The cable is made anew with every boot.
plug() {
  until ip link set host master lan 2> /dev/null; do sleep 0.05; done
  ip link set host up
}

boot() (
  # The one of the last boot lasts as long as anybody is in that network.
  ip link delete host 2> /dev/null || true
  plug &
  echo "$BASHPID" > /sys/fs/cgroup/machine/cgroup.procs
  exec systemd-nspawn --quiet --directory="$root" --boot --machine="$machine" --network-veth-extra=host:eth0 \
    --register=no --keep-unit --resolv-conf=off --link-journal=no --console=pipe < /dev/null > "$root.console" 2>&1
)

echo ready
while read -r _; do
  while
    status=0
    boot || status=$?
    [ "$status" -eq 133 ]
  do :; done
  echo "$status"
done
