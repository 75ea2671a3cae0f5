#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# A sweep through Slurm: starts a cluster of two nodes on this machine, submits what `paqm-lab sweep
# --slurm` writes, waits for it, and ends all that it has started. Debian's packages are unpacked into
# a scratch directory, nothing is installed. Needs root, as slurmd does.
#
#	testbed/slurm/two-nodes.sh SWEEP.toml [OUT [TASKS]]
set -eu
[ $# -ge 1 ] || { echo "usage: $0 SWEEP.toml [OUT [TASKS]]" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "$0: slurmd needs root" >&2; exit 2; }
lab="$(dirname "$(readlink -f "$0")")/../paqm-lab"
sweep=$(readlink -f "$1")
out=${2:-out/$(sed -n 's/^name *= *"\(.*\)"/\1/p' "$sweep")}
tasks=${3:-2}
packages="libhwloc15 liblua5.1-0 libmunge2 munge slurm-wlm-basic-plugins slurm-client slurmctld slurmd"

home=$(mktemp -d /tmp/paqm-slurm.XXXXXX)
started=()
end() {
	for pid in "${started[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
	wait
	rm -rf "$home"
}
trap end EXIT
trap 'exit 130' INT TERM

mkdir "$home/debs" "$home/root" "$home/state" "$home/spool1" "$home/spool2"
# shellcheck disable=SC2086
(cd "$home/debs" && apt-get -q -oAPT::Sandbox::User=root download $packages) >"$home/apt.log" 2>&1 || {
	cat "$home/apt.log" >&2
	echo "$0: Debian's slurm-wlm cannot be fetched; apt-get update?" >&2
	exit 2
}
for deb in "$home"/debs/*.deb; do
	dpkg -x "$deb" "$home/root"
done
lib="$home/root/usr/lib/x86_64-linux-gnu"
export LD_LIBRARY_PATH="$lib:$lib/slurm-wlm" PATH="$home/root/usr/bin:$home/root/usr/sbin:$PATH"
export SLURM_CONF="$home/slurm.conf"

# Names of the nodes; both are this machine, each with a port of its own.
cpus=$(nproc)
each=$(((cpus + 1) / 2))
cat >"$SLURM_CONF" <<EOF
ClusterName=paqm
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=26817
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$home/munge.socket
CredType=cred/munge
PluginDir=$lib/slurm-wlm
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/spool-%n
SlurmctldPidFile=$home/slurmctld.pid
SlurmdPidFile=$home/slurmd-%n.pid
SlurmctldLogFile=$home/slurmctld.log
SlurmdLogFile=$home/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2
ReturnToService=2
SlurmdParameters=config_overrides
MpiDefault=none
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=26818 CPUs=$each RealMemory=4000
NodeName=n2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=26819 CPUs=$each RealMemory=4000
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
EOF

# start NAME COMMAND...: a daemon in the foreground of its own log
start() {
	local name=$1
	shift
	"$@" >"$home/$name.out" 2>&1 &
	started+=($!)
}
dd if=/dev/urandom of="$home/munge.key" bs=128 count=1 2>/dev/null
chmod 700 "$home"
chmod 600 "$home/munge.key"
start munged munged --foreground --force --key-file="$home/munge.key" --socket="$home/munge.socket" \
	--pid-file="$home/munge.pid" --seed-file="$home/munge.seed" --log-file="$home/munge.log"
start slurmctld slurmctld-wlm -D
start n1 slurmd-wlm -D -N n1 -d "$home/root/usr/sbin/slurmstepd-wlm"
start n2 slurmd-wlm -D -N n2 -d "$home/root/usr/sbin/slurmstepd-wlm"

tell() {
	for log in "$home"/*.out "$home"/*.log; do
		echo "--- $(basename "$log")" >&2
		tail -n 8 "$log" >&2
	done
	exit 1
}
for _ in $(seq 60); do
	[ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && break
	sleep 1
done
[ "$(sinfo -h -t idle -o %D)" = 2 ] || { echo "$0: the nodes do not come up" >&2; tell; }
sinfo -N

"$lab" sweep "$sweep" --out "$out" --tasks "$tasks" --slurm "$home/jobs"
job=$(sbatch --parsable "$home"/jobs/*.sbatch)
echo "job $job"
while [ -n "$(squeue -h -j "$job" -o %i 2>/dev/null)" ]; do
	sleep 2
done
# Where each task ran, and how it ended.
scontrol show job "$job" | grep -oE 'ArrayTaskId=[0-9]+|JobState=[A-Z]+|NodeList=n[0-9]|RunTime=[0-9:-]+' |
	paste -sd' \n' || true
"$lab" store fill "$out"
"$lab" sweep "$sweep" --out "$out" --list | awk '{count[$2]++} END {for (k in count) print count[k], k}'
