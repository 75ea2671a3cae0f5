# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A line of PPPoE: sender - veth - this machine - ppp0 over a pair of veth - provider. Nothing of what
# such a device puts in front of IP is in its packets yet. Read by `run` after persistence.sh.
echo "# PPPoE: paqm comes with each connection"

sender() { ip netns exec sender "$@"; }
ppp_stat() { tc -s -j qdisc show dev ppp0 | jq -r ".[] | select(.kind == \"paqm\") | $1"; }
# what the flow was told last, Mbit/s; fails if that is nothing
told() { tc -s class show dev ppp0 | sed -n 's/.* told \([0-9.]*\)Mbit .*/\1/p' | grep .; }
# another device than before: each connection has its own
reconnected() { [ "$(cat /sys/class/net/ppp0/ifindex)" != "$1" ] && has_paqm ppp0; }
no_ppp() { ! ip link show dev ppp0; }

install -m 755 "$examples/ppp-ip-up" /etc/ppp/ip-up.d/paqm
mkdir -p /etc/paqm
echo 'OPTIONS="bandwidth 20mbit overhead 22 feedback icmp"' >/etc/paqm/ppp0.conf
(umask 077 && echo "qdisc change dev ppp0 root paqm key 7:$(printf '0f%.0s' {1..16})" >/etc/paqm/ppp0.key)
ip netns add provider
ip netns add sender
ip link add dsl0 type veth peer name line0 netns provider
ip link add down0 type veth peer name up0 netns sender
ip addr add 10.1.0.1/24 dev down0
ip link set dsl0 up
ip link set down0 up
ip -n provider link set line0 up
ip -n sender addr add 10.1.0.2/24 dev up0
ip -n sender link set up0 up
ip -n sender route add default via 10.1.0.1
forward=$(sysctl -n net.ipv4.ip_forward)
sysctl -qw net.ipv4.ip_forward=1
printf 'noauth\nnopersist\nifname isp0\nlcp-echo-interval 0\n' >/root/pppoe-server
ip netns exec provider pppoe-server -F -I line0 -L 10.9.0.1 -R 10.9.0.2 -N 4 -O /root/pppoe-server \
	>/root/pppoe-server.log 2>&1 &
server=$!
check "pppd connects" pppd plugin pppoe.so nic-dsl0 noauth noipdefault defaultroute persist \
	holdoff 1 maxfail 0 lcp-echo-interval 0 updetach
check "its script attached paqm" wait_for has_paqm ppp0
check "and set the key" wait_for has_key ppp0
has "tc warns that nothing waits there without a rate" \
	"$(tc qdisc replace dev ppp0 root handle 1: paqm bandwidth auto 2>&1)" 'PPPoE.* never lets packets wait'
has "but not with one" "$(tc qdisc replace dev ppp0 root handle 1: paqm bandwidth 20mbit 2>&1)" '^$'
check "the provider sends to the sender" ip -n provider route add 10.1.0.0/24 dev isp0

sender python3 "$here/blast.py" --to 10.9.0.1 --kind rtp --flows 1 --rate 1e6 --size 372 --seconds 20 &
flow=$!
# one flow may use 96 % of the line, of which IP has 400 of 422 bytes
check "the flow is told its rate" wait_for told
sleep 8 # the mean size of packets is known by then
within "which is what IP may have" "$(told)" 18.0 18.3
wait "$flow"
within "RTP is media" "$(ppp_stat .media.sent_packets)" 300 100000
within "messages were sent" "$(ppp_stat .notices_sent)" 1 10000
check "and reached the sender" has_messages sender

was=$(cat /sys/class/net/ppp0/ifindex)
check "the connection is cut" pkill -HUP -x -o pppd
check "the next one has paqm, too" wait_for reconnected "$was"
check "pppd ends" pkill -x pppd
check "its device is gone" wait_for no_ppp
kill "$server"
wait "$server" 2>/dev/null
sysctl -qw net.ipv4.ip_forward="$forward"
ip netns del sender
ip netns del provider
rm -f /etc/ppp/ip-up.d/paqm /etc/paqm/ppp0.conf /etc/paqm/ppp0.key /etc/ppp/resolv.conf \
	/root/pppoe-server /root/pppoe-server.log
rmdir --ignore-fail-on-non-empty /etc/paqm
