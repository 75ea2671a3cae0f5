#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Ways back: messages and echo requests find the sender of a packet that was bridged, with VLANs or
# without, or routed in a VRF or by rules; and none leaves without an address to come from.
. "$(dirname "$0")/lib.sh"
peer="$here/feedback.py"
declare -A mac=([a]=02:00:00:00:00:0a [b]=02:00:00:00:00:0b [c]=02:00:00:00:00:0c)

# Hosts a, b, c, each on a wire to m: a0 -- ma, ...
network() {
	local n
	ip netns add m
	ip -n m link set lo up
	for n in a b c; do
		ip netns add $n
		ip link add ${n}0 netns $n address ${mac[$n]} type veth peer name m$n netns m
		ip -n $n link set lo up
		ip -n $n link set dev ${n}0 up
		ip -n m link set dev m$n up
		ip netns exec $n ethtool -K ${n}0 tso off gso off gro off >/dev/null
		ip netns exec m ethtool -K m$n tso off gso off gro off >/dev/null
	done
}

gone() {
	local n
	for n in m a b c; do
		ip netns del $n
	done
}

# bridge [OPTIONS]: the three wires in one
bridge_all() {
	local n
	ip -n m link add br0 type bridge "$@"
	ip -n m link set br0 up
	for n in a b c; do
		ip -n m link set dev m$n master br0
	done
	sleep 1
}

# address HOST DEVICE ADDRESS...
address() {
	local host=$1 device=$2 one
	shift 2
	ip -n "$host" link set dev "$device" up
	for one in "$@"; do
		if [[ $one = *:* ]]; then
			ip -n "$host" addr add "$one" dev "$device" nodad
		else
			ip -n "$host" addr add "$one" dev "$device"
		fi
	done
}

# vlan HOST DEVICE ID ADDRESS...: a VLAN device with these addresses
vlan() {
	ip -n "$1" link add link "$2" name "$2.$3" type vlan id "$3"
	address "$1" "$2.$3" "${@:4}"
}

# queue DEVICE [OPTIONS]
queue() {
	local device=$1
	shift
	ip netns exec m tc qdisc replace dev "$device" root handle 1: paqm bandwidth 20mbit \
		feedback icmp rtt auto "$@"
}

# stat DEVICE PATH
stat() {
	ip netns exec m tc -s -j qdisc show dev "$1" |
		jq -r "first(.[] | select(.kind==\"paqm\")) | $2"
}

# talk FROM TO ADDRESS OWN [OTHER]: media for 4 s; what FROM is told, and OTHER, into /run/tmp
talk() {
	local n jobs=()
	for n in $1 ${5:-}; do
		ip netns exec "$n" python3 "$peer" watch --seconds 5 --own "$4" >"/run/tmp/$n" &
		jobs+=($!)
	done
	sleep 0.2
	ip netns exec "$1" python3 "$peer" send --to "$3" --seconds 4
	wait "${jobs[@]}"
}

told() { jq -r "$2" "/run/tmp/$1"; }

# heard HOST WHAT v4|v6 SOURCE: it was told, rightly, by that address
heard() {
	within "$2: messages" "$(told "$1" ".$3")" 5 100
	within "$2: messages that prove nothing" "$(told "$1" .wrong)" 0 0
	check "$2: they come from $4" [ "$(told "$1" '.sources | join(" ")')" = "$4" ]
}

load

echo "# a bridge without an address"
network
bridge_all
address a a0 10.1.0.1/24 2001:db8:1::1/64
address b b0 10.1.0.2/24 2001:db8:1::2/64
address c c0 10.1.0.3/24 2001:db8:1::3/64
queue mb
talk a b 10.1.0.2 10.1.0.1 c
heard a "bridged" v4 10.1.0.2
within "bridged: no stranger heard" "$(told c .v4)" 0 0
within "bridged: nobody was asked for an RTT that could not answer" "$(told a .echo4)" 0 0
within "bridged: failed" "$(stat mb .notices_failed)" 0 0
talk a b 2001:db8:1::2 2001:db8:1::1
heard a "bridged, IPv6" v6 2001:db8:1::2
a_link=fe80::ff:fe00:a
b_link=fe80::ff:fe00:b
talk a b "$b_link%a0" "$a_link"
heard a "bridged, link-local" v6 "$b_link"

echo "# media that is flooded teaches the bridge nothing about its receiver"
ip -n a neigh replace 10.1.0.9 lladdr 02:00:00:00:00:99 dev a0
talk a b 10.1.0.9 10.1.0.1
heard a "flooded" v4 10.1.0.9
within "places of a receiver that never spoke" \
	"$(ip netns exec m bridge fdb show br br0 | grep -c 02:00:00:00:00:99)" 0 0

echo "# a bridge with an address beside the sender's uses that, and asks for the RTT"
address m br0 10.1.0.5/24 2001:db8:1::5/64
talk a b 10.1.0.2 10.1.0.1
heard a "managed bridge" v4 10.1.0.5
within "managed bridge: the sender was asked" "$(told a .echo4)" 2 20
within "managed bridge: and answered" "$(stat mb .rtt_samples)" 1 2

echo "# a VLAN through a bridge that has an address elsewhere, and a way to everywhere"
ip -n m route add default via 10.1.0.3
vlan a a0 10 10.10.0.1/24
vlan b b0 10 10.10.0.2/24
address c c0 10.10.0.1/24 # who could be taken for the sender
unsent=$(stat mb .notices_failed)
talk a b 10.10.0.2 10.10.0.1 c
heard a "VLAN" v4 10.10.0.2
within "VLAN: the other network heard" "$(told c '.v4 + .echo4')" 0 0
within "VLAN: failed" "$(($(stat mb .notices_failed) - unsent))" 0 0
gone

echo "# a bridge that knows VLANs: a and c have the same address, each in his own"
network
bridge_all vlan_filtering 1 vlan_default_pvid 0
br() { ip netns exec m bridge vlan add "$@"; }
br dev ma vid 20 pvid untagged
br dev mc vid 30 pvid untagged
br dev mb vid 20
br dev mb vid 30
address a a0 10.20.0.1/24
address c c0 10.20.0.1/24
vlan b b0 20 10.20.0.2/24
vlan b b0 30 10.20.0.3/24
queue mb
talk a b 10.20.0.2 10.20.0.1 c
heard a "to a trunk" v4 10.20.0.2
within "to a trunk: the other VLAN heard" "$(told c '.v4 + .echo4')" 0 0
queue ma
talk b a 10.20.0.1 10.20.0.2 c
heard b "from a trunk" v4 10.20.0.1
within "from a trunk: the other VLAN heard" "$(told c '.v4 + .echo4')" 0 0
gone

echo "# a VLAN above the device of the queue is a bridge's port"
network
ip -n m link add link mb name mb.40 type vlan id 40
ip -n m link set dev mb.40 up
ip -n m link add br0 type bridge
ip -n m link set br0 up
ip -n m link set dev mb.40 master br0
ip -n m link set dev ma master br0
address a a0 10.40.0.1/24
vlan b b0 40 10.40.0.2/24
queue mb
talk a b 10.40.0.2 10.40.0.1
heard a "port above" v4 10.40.0.2
gone

# router: m routes between a, in 10.1.0.0/24, and b, in 10.2.0.0/24 with VLAN 50
router() {
	network
	ip netns exec m sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
	address a a0 10.1.0.1/24 2001:db8:1::1/64
	vlan b b0 50 10.2.0.2/24 2001:db8:2::2/64
	ip -n m link add link mb name mb.50 type vlan id 50
	ip -n a route add default via 10.1.0.5
	ip -n a -6 route add default via 2001:db8:1::5
	ip -n b route add default via 10.2.0.5
	ip -n b -6 route add default via 2001:db8:2::5
}

routed() {
	address m ma 10.1.0.5/24 2001:db8:1::5/64
	address m mb.50 10.2.0.5/24 2001:db8:2::5/64
}

echo "# VRF: a VLAN is in it, the device of the queue is not; replies only come to who is in it"
router
ip -n m link add red type vrf table 10
ip -n m link set red up
ip -n m link set dev ma master red
ip -n m link set dev mb.50 master red
routed
ip -n m route add blackhole 10.1.0.0/24
ip -n m -6 route add blackhole 2001:db8:1::/64
ip netns exec m sysctl -qw net.ipv4.raw_l3mdev_accept=0
queue mb
talk a b 10.2.0.2 10.1.0.1
heard a "VRF" v4 10.1.0.5
talk a b 2001:db8:2::2 2001:db8:1::1
heard a "VRF, IPv6" v6 2001:db8:1::5
within "VRF: sources that answered" "$(stat mb .rtt_samples)" 2 2
gone

echo "# VRF: the device of the queue is a port of a bridge in it"
router
ip -n m link add red type vrf table 10
ip -n m link set red up
ip -n m link add br0 type bridge
ip -n m link set dev mb.50 up
ip -n m link set dev mb.50 master br0
ip -n m link set br0 master red
ip -n m link set dev ma master red
address m ma 10.1.0.5/24
address m br0 10.2.0.5/24
ip -n m route add blackhole 10.1.0.0/24
sleep 1
queue mb
talk a b 10.2.0.2 10.1.0.1
heard a "bridge in a VRF" v4 10.1.0.5
gone

echo "# rules by mark, by traffic class, by user: table 77 alone knows the way"
for rule in "fwmark 7" "dsfield 0xc0" "uidrange 0-0"; do
	router
	routed
	ip netns exec m sysctl -qw net.ipv4.fwmark_reflect=1 net.ipv6.fwmark_reflect=1
	ip netns exec m tc qdisc add dev ma clsact
	ip netns exec m tc filter add dev ma ingress matchall action skbedit mark 7
	ip -n m route add blackhole 10.1.0.1
	ip -n m -6 route add blackhole 2001:db8:1::1
	for v in -4 -6; do
		[ "$v $rule" = "-4 dsfield 0xc0" ] && continue
		# shellcheck disable=SC2086 # words
		ip -n m $v rule add prio 5 $rule iif lo lookup 77
	done
	ip -n m route add 10.1.0.1 dev ma table 77
	ip -n m -6 route add 2001:db8:1::1 dev ma table 77
	queue mb
	if [ "$rule" != "dsfield 0xc0" ]; then # IPv4 has rules by the old TOS bits only
		talk a b 10.2.0.2 10.1.0.1
		heard a "$rule" v4 10.1.0.5
		within "$rule: sources that answered" "$(stat mb .rtt_samples)" 1 1
	fi
	talk a b 2001:db8:2::2 2001:db8:1::1
	heard a "$rule, IPv6" v6 2001:db8:1::5
	within "$rule, IPv6: sources that answered" "$(stat mb .echo_answered)" 5 20
	gone
done

echo "# a router without any address"
router
ip -n m link set dev mb.50 up
# unnumbered HOST DEVICE DEVICE-OF-M NETWORK NUMBER: they know each other without asking
unnumbered() {
	ip -n m route add "$4.0/24" dev "$3"
	ip -n m neigh replace "$4.$5" lladdr "${mac[$1]}" dev "$3"
	ip -n "$1" neigh replace "$4.5" dev "$2" \
		lladdr "$(ip -n m -j link show dev "$3" | jq -r '.[0].address')"
}
unnumbered a a0 ma 10.1.0 1
unnumbered b b0.50 mb.50 10.2.0 2
queue mb
talk a b 10.2.0.2 10.1.0.1
within "no address: messages" "$(told a .v4)" 0 0
within "no address: sent" "$(stat mb .notices_sent)" 0 0
within "no address: failed" "$(stat mb .notices_failed)" 5 100
gone

check "unload" unload
no_leaks
result
