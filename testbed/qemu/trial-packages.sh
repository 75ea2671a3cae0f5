#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The trial kit as a new user has it: three fresh Debian systems (router, caller, callee) with nothing
# but the packages, installed by the blocks of docs/trial.md as they stand there, and joined by
# namespaces. All but P-AQM itself: the kernel is this machine's. The queue is that of the days
# before, `--arm baseline --baseline fifo`; with the real module: lab_trial.py in a guest. Prints
# `ok NAME` and `not ok NAME: why`, then `N passed, N failed`.
# Usage: testbed/qemu/trial-packages.sh [--debs DIRECTORY] [--out OUTPUT]    (as root)
set -u
here=$(dirname "$(readlink -f "$0")")
top=$(dirname "$(dirname "$here")")
. "$here/lib.sh"
. "$here/guest/lib.sh"
debs="$top/out/deb"
results="$top/out/trial" # not "out": check() has one
while [ $# -gt 0 ]; do
	[ $# -ge 2 ] || fail "$1 needs a directory"
	case $1 in
	--debs) debs=$2 ;;
	--out) results=$2 ;;
	*) fail "what is \"$1\"? see the head of $0" ;;
	esac
	shift 2
done
need_root "making systems"
install_missing mmdebstrap:mmdebstrap
for name in paqm-trial paqmd paqm-streamer libpaqmclient0 sch-paqm-dkms tc-paqm; do
	compgen -G "$debs/${name}_*.deb" >/dev/null || fail "there is no package $name in $debs: make deb"
done
debs=$(readlink -f "$debs")
mkdir -p "$results" && results=$(readlink -f "$results")
need_space "$results" 6000

roots=$(mktemp -d -p "$results" systems.XXXXXX)
tag=paqm-t$$
jobs=()
finish() {
	local host
	[ "${#jobs[@]}" -eq 0 ] || kill "${jobs[@]}" 2>/dev/null
	for host in router caller callee; do
		ip netns del "$tag-$host" 2>/dev/null
		umount -R "$roots/$host/dev" "$roots/$host/proc" 2>/dev/null
	done
	rm -rf --one-file-system "$roots"
}
trap finish EXIT
trap 'exit 130' INT TERM

# The block of the handbook that installs on such a machine.
block() {
	sed -n "/^<!-- installs: $1 -->\$/,/^\`\`\`\$/p" "$top/docs/trial.md" | sed '1,2d; $d'
}

# in_root HOST COMMAND: in the network and the system of a host; with $as=exec in the place of the
# shell that says it
in_root() {
	local host=$1
	shift
	${as:-} ip netns exec "$tag-$host" sh -c 'mount -t sysfs sysfs "$0/sys"; exec chroot "$0" "$@"' \
		"$roots/$host" /usr/bin/env -i PATH="$path" HOME=/root LC_ALL=C.UTF-8 /bin/bash -c "cd /root && $*"
}
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export DEBIAN_FRONTEND=noninteractive

make_system() { # HOST ROLE
	local host=$1 root="$roots/$1"
	say "$host: a fresh system, then what the handbook installs (log: $results/$host.log)"
	cat >"$roots/hook-$host" <<-HOOK
		set -eu
		mkdir -p "\$1/root/debs"
		cp "$debs"/*.deb "\$1/root/debs/"
		printf '#!/bin/sh\nexit 101\n' >"\$1/usr/sbin/policy-rc.d"
		chmod 755 "\$1/usr/sbin/policy-rc.d"
		chroot "\$1" useradd -m alice
		cat >"\$1/root/install.sh"  <<'BLOCK'
		set -eu
		cd /root/debs
		alias apt='apt-get -q -y'
		shopt -s expand_aliases
		$(block "$2")
		BLOCK
		chroot "\$1" bash -c "set -eu; shopt -s expand_aliases; . /root/install.sh"
	HOOK
	nice -n 10 mmdebstrap --quiet --variant=apt --mode=root --components=main \
		--include=adduser,ca-certificates --customize-hook="sh $roots/hook-$host \"\$1\"" \
		"$(codename)" "$root" "$(archive)" >"$results/$host.log" 2>&1
}

check "$(codename): the handbook's packages install on a router" make_system router router
check "$(codename): and on a machine that calls" make_system caller ends
cp -a "$roots/caller" "$roots/callee" || fail "cannot copy a system"
for host in router caller callee; do
	ip netns add "$tag-$host"
	mount -t proc proc "$roots/$host/proc"
	mount --rbind /dev "$roots/$host/dev" && mount --make-rslave "$roots/$host/dev"
done
ip -n "$tag-router" link add lan type veth peer name eth0 netns "$tag-caller"
ip -n "$tag-router" link add eth0 type veth peer name eth0 netns "$tag-callee"
ip -n "$tag-router" address add 10.0.1.1/24 dev lan
ip -n "$tag-router" address add 10.0.2.1/24 dev eth0
ip -n "$tag-caller" address add 10.0.1.2/24 dev eth0
ip -n "$tag-callee" address add 10.0.2.2/24 dev eth0
for host in router caller callee; do
	for dev in lo eth0; do ip -n "$tag-$host" link set $dev up; done
	echo "10.0.2.2 callee.example.org" >>"$roots/$host/etc/hosts"
done
ip -n "$tag-router" link set lan up
ip -n "$tag-caller" route add default via 10.0.1.1
ip -n "$tag-callee" route add default via 10.0.2.1
ip netns exec "$tag-router" sysctl -q -w net.ipv4.ip_forward=1

said=$(in_root router "paqm-trial check eth0 --bandwidth 3mbit")
has "without the module the check says what to install" "$said" 'are sch-paqm-dkms .* installed'
has "the rest of the router is fit" "$said" 'ok +what stands there can be put back'
said=$(in_root caller "paqm-trial check")
has "a call with oneself" "$said" 'ok +a call with oneself'
check "alice is in the group of paqmd" in_root caller "id -nG alice | grep -qw paqm"
has "manual page and completion" "$(in_root caller "ls /usr/share/man/man1/paqm-trial.1.gz \
	/usr/share/bash-completion/completions/paqm-trial")" 'man1.*'
has "the handbook is there" "$(in_root caller 'ls /usr/share/doc/paqm-trial')" '^trial.md$'

before=$(ip netns exec "$tag-router" tc qdisc show dev eth0)
as=exec in_root router "exec paqm-trial router eth0 --bandwidth 3mbit --alternate none --arm baseline \
	--baseline fifo --foreground" >"$results/router-run.log" 2>&1 &
jobs+=($!)
wait_for grep -q 'eth0: fifo' "$results/router-run.log"
in_root caller "umask 077; head -c 24 /dev/urandom | base64 >secret"
cp -p "$roots/caller/root/secret" "$roots/callee/root/secret"
silent="--source test --audio test --sink none --audio-sink none --paqmd none"
as=exec in_root callee "exec paqm-trial call --listen --secret secret --consent on-paper -- $silent" \
	>"$results/callee-call.log" 2>&1 &
jobs+=($!)
wait_for grep -q waiting "$results/callee-call.log"
said=$(in_root caller "paqm-trial call callee.example.org --secret secret --consent on-paper -- \
	$silent --duration 15" 2>&1)
has "a call through the router" "$said" 'figures of this call are in'
wait "${jobs[1]}"
jobs=("${jobs[0]}")
check "the trial ends" in_root router "paqm-trial end eth0"
same "and what stood there before is back" \
	"$(ip netns exec "$tag-router" tc qdisc show dev eth0)" "$before"
wait "${jobs[0]}"
jobs=()

mkdir -p "$roots/caller/root/folders"
cp -r "$roots/router/var/lib/paqm-trial/eth0" "$roots/caller/root/folders/router"
cp -r "$roots/caller/root/paqm-trial" "$roots/caller/root/folders/caller"
cp -r "$roots/callee/root/paqm-trial" "$roots/caller/root/folders/callee"
said=$(in_root caller "paqm-trial report folders --out report" 2>&1)
has "the report has the call" "$said" '1 calls \(1 fifo\)'
cp -r "$roots/caller/root/report" "$results/"
check "both ends are in it, with their clocks aligned" python3 -c "
import json; row, = json.load(open('$results/report/result.json'))['calls']
assert row['ends'] == ['caller', 'callee'], row
assert row['to_callee']['frame_delivery_ms']['p50'] > 0 and row['to_caller']['frames_complete'], row"

in_root router "mkdir -p /var/lib/paqm-trial/eth0; apt-get -q -y purge paqm-trial" >"$results/purge.log" 2>&1
check "purge leaves nothing" in_root router "! find / -xdev -path /proc -prune -o -path /root -prune \
	-o -name '*paqm-trial*' -print | grep ."
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
