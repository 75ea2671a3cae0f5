# SPDX-License-Identifier: GPL-2.0
# Shared by the kernel's lab tests, which run inside a guest (paqm-lab exec).
# Each test prints lines `ok NAME` or `not ok NAME: why`; result counts them.
here=$(dirname "$(readlink -f "$0")")
failed=0
passed=0

ok() {
	passed=$((passed + 1))
	echo "ok $*"
}

not_ok() {
	failed=$((failed + 1))
	echo "not ok $*"
}

# check NAME COMMAND...: the command's status decides
check() {
	local name=$1
	shift
	if "$@"; then ok "$name"; else not_ok "$name: $*"; fi
}

# within NAME VALUE LOW HIGH: integers or decimals
within() {
	if awk -v v="$2" -v l="$3" -v h="$4" 'BEGIN { exit !(v != "" && v >= l && v <= h) }'; then
		ok "$1 ($2)"
	else
		not_ok "$1: got '$2', want $3..$4"
	fi
}

result() {
	echo "$passed passed, $failed failed"
	exit $((failed != 0))
}

# no_leaks: nothing that kmemleak reports, where the kernel has it; after the last use
no_leaks() {
	local leaks
	[ -e /sys/kernel/debug/kmemleak ] || return 0
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	sleep 1
	echo scan >/sys/kernel/debug/kmemleak
	leaks=$(grep -c 'unreferenced' /sys/kernel/debug/kmemleak)
	[ "$leaks" = 0 ] || head -40 /sys/kernel/debug/kmemleak
	within "kmemleak reports" "$leaks" 0 0
}

load() {
	insmod "$PAQM_KO_DIR/paqm_feedback.ko" && insmod "$PAQM_KO_DIR/sch_paqm.ko"
}

unload() {
	rmmod sch_paqm paqm_feedback
}

# Two namespaces a -- b, a's device is a0 10.1.0.1, b's b0 10.1.0.2; no offloads.
pair() {
	ip netns add a
	ip netns add b
	ip link add a0 netns a address 02:00:00:00:00:0a type veth \
		peer name b0 netns b address 02:00:00:00:00:0b
	ip -n a addr add 10.1.0.1/24 dev a0
	ip -n b addr add 10.1.0.2/24 dev b0
	ip -n a link set lo up
	ip -n b link set lo up
	ip -n a link set a0 up
	ip -n b link set b0 up
	ip netns exec a ethtool -K a0 tso off gso off gro off >/dev/null
	ip netns exec b ethtool -K b0 tso off gso off gro off >/dev/null
}

# blast ARGS: traffic from a to b, see blast.py
blast() {
	ip netns exec a python3 "$here/../../tests/blast.py" --to 10.1.0.2 "$@"
}

# All qdiscs of a0 with statistics. The tc of iproute2 6.1 prints hfsc's options as
# plain text into its JSON.
qdiscs() {
	ip netns exec a tc -s -j qdisc show dev a0 | sed 's/{default [0-9a-fx]* }/{}/'
}

# stat_of FILTER: a value of the statistics of paqm on a0, by jq path
stat_of() {
	qdiscs | jq -r ".[] | select(.kind==\"paqm\") | $1"
}
