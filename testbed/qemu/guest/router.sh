# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Traffic over paqm on a pair of connected devices: sender - veth - router - pair - receiver, each a
# network namespace. Read by `run` with: NAME DEVICE DEVICE. Counters decide, not the clock.
driver=$1 out_dev=$2 in_dev=$3
echo "# $driver: $out_dev to $in_dev"

in_router() { ip netns exec router "$@"; }

# paqm_stat FILTER: a value of paqm's statistics, by jq path
paqm_stat() {
	in_router tc -s -j qdisc show dev "$out_dev" | jq -r ".[] | select(.kind == \"paqm\") | $1"
}

# device_stat NAMESPACE DEVICE NAME
device_stat() { ip netns exec "$1" cat "/sys/class/net/$2/statistics/$3"; }

drained() { [ "$(paqm_stat .backlog)" = 0 ] && [ "$(paqm_stat .qlen)" = 0 ]; }

# The three counts of one packet's way must agree once nothing moves any more.
settled() {
	local was now
	was=$(device_stat receiver "$in_dev" rx_packets)
	sleep 3
	now=$(device_stat receiver "$in_dev" rx_packets)
	[ "$was" = "$now" ] && drained
}

# transfer NAME MEGABYTES: over TCP from the router to the receiver
transfer() {
	local server sent
	ip netns exec receiver python3 "$here/transfer.py" receive >/tmp/received &
	server=$!
	wait_for ip netns exec receiver sh -c 'ss -ltn | grep -q :5201'
	sent=$(in_router python3 "$here/transfer.py" send 10.2.0.2 "$2")
	wait "$server"
	same "$driver: $1" "$(cat /tmp/received)" "${sent:-nothing}"
}

topology() {
	local ns
	for ns in sender router receiver; do
		ip netns add $ns
		ip netns exec $ns sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
			net.ipv6.conf.default.disable_ipv6=1
		ip -n $ns link set lo up
	done
	ip link add up0 netns sender type veth peer name down0 netns router
	ip link set "$out_dev" netns router
	ip link set "$in_dev" netns receiver
	ip -n sender addr add 10.1.0.2/24 dev up0
	ip -n router addr add 10.1.0.1/24 dev down0
	ip -n router addr add 10.2.0.1/24 dev "$out_dev"
	ip -n receiver addr add 10.2.0.2/24 dev "$in_dev"
	ip -n sender link set up0 up
	ip -n router link set down0 up
	ip -n router link set "$out_dev" up
	ip -n receiver link set "$in_dev" up
	ip -n sender route add default via 10.1.0.1
	ip -n receiver route add default via 10.2.0.1
	in_router sysctl -qw net.ipv4.ip_forward=1
	wait_for in_router grep -q 1 "/sys/class/net/$out_dev/carrier" || return 1
	wait_for ip netns exec receiver grep -q 1 "/sys/class/net/$in_dev/carrier" || return 1
	ip -n receiver link set "$in_dev" promisc on # crafted frames have an address of their own
	# who has what never has to be asked again: nothing but the test's packets from here on
	ip -n router neigh replace 10.2.0.2 dev "$out_dev" nud permanent \
		lladdr "$(ip netns exec receiver cat "/sys/class/net/$in_dev/address")"
	ip -n receiver neigh replace 10.2.0.1 dev "$in_dev" nud permanent \
		lladdr "$(in_router cat "/sys/class/net/$out_dev/address")"
}

check "$driver: the pair is connected" topology
check "$driver: tc attaches paqm" in_router tc qdisc replace dev "$out_dev" root \
	paqm bandwidth 2mbit feedback icmp

# More than fits, so that some is dropped: what was offered must be sent or counted as dropped.
tx=$(device_stat router "$out_dev" tx_packets)
rx=$(device_stat receiver "$in_dev" rx_packets)
offered=0
for args in '--kind rtp --flows 3 --size 700' '--kind quic --flows 4 --size 1400'; do
	read -r _ sent _ refused <<<"$(in_router python3 "$here/send.py" "$out_dev" $args --count 600)"
	offered=$((offered + sent + refused))
done
check "$driver: the queue runs empty" wait_for settled
same "$driver: packets offered" "$offered" 1200
same "$driver: sent and dropped make up what was offered" \
	"$(paqm_stat '.packets + .drops')" "$offered"
within "$driver: there was an overload" "$(paqm_stat .drops)" 1 1199
same "$driver: the device sent what paqm sent" \
	$(($(device_stat router "$out_dev" tx_packets) - tx)) "$(paqm_stat .packets)"
same "$driver: the other end received it" \
	$(($(device_stat receiver "$in_dev" rx_packets) - rx)) "$(paqm_stat .packets)"

check "$driver: tc changes the rate" in_router tc qdisc change dev "$out_dev" root \
	paqm bandwidth 20mbit
ip netns exec sender python3 "$here/blast.py" --to 10.2.0.2 --kind rtp --flows 2 --rate 1e6 --seconds 6
within "$driver: RTP is media" "$(paqm_stat .media.sent_packets)" 300 100000
within "$driver: messages were sent" "$(paqm_stat .notices_sent)" 1 10000
check "$driver: the messages reached the sender" has_messages sender

transfer "TCP with segmentation offload arrives" 4
check "$driver: change under traffic" in_router tc qdisc change dev "$out_dev" root \
	paqm bandwidth 50mbit media-target 5ms
check "$driver: the queue runs empty again" wait_for drained

check "$driver: without bandwidth, the driver's queue limits" \
	in_router tc qdisc replace dev "$out_dev" root paqm bandwidth none
transfer "TCP at the speed of the device arrives" 8
limit=$(in_router cat "/sys/class/net/$out_dev/queues/tx-0/byte_queue_limits/limit")
if [ "$driver" = virtio_net ] && [ "$(printf '6.11\n%s\n' "$(uname -r)" | sort -V | head -n 1)" != 6.11 ]; then
	echo "# virtio_net has byte queue limits from Linux 6.11 on, not here"
else
	within "$driver: byte queue limits are at work" "$limit" 1 10000000
fi
check "$driver: tc removes paqm" in_router tc qdisc del dev "$out_dev" root
ip -n router link set "$out_dev" netns 1
ip -n receiver link set "$in_dev" netns 1
for ns in sender router receiver; do
	ip netns del $ns
done
