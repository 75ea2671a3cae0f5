# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# rlqosd under the distribution's own service manager: what its unit promises, and a neighbour's load
# that reaches a queue. Read by `run`.
echo "# rlqosd"
for file in /usr/sbin/rlqosd /usr/share/man/man8/rlqosd.8.gz; do
	has "paqmd has $file" "$(dpkg -L paqmd)" "^$file$"
done
check "started without /etc/paqm/rlqosd: no error" systemctl start rlqosd
same "and it does not run" "$(systemctl is-active rlqosd)" inactive

# host: queue at q0; next: bottleneck at s0; sink
ip netns add next
ip netns add sink
ip link add q0 type veth peer name q1 netns next
ip -n next link add s0 type veth peer name s1 netns sink
ip addr add 10.6.0.2/24 dev q0
ip link set q0 up
ip -n next addr add 10.6.0.1/24 dev q1
ip -n next addr add 10.7.0.1/24 dev s0
ip -n sink addr add 10.7.0.2/24 dev s1
ip -n next link set q1 up
ip -n next link set s0 up
ip -n sink link set s1 up
ip route add 10.7.0.0/24 via 10.6.0.1
ip netns exec next sysctl -qw net.ipv4.ip_forward=1
check "tc attaches rlqos at the host" tc qdisc replace dev q0 root rlqos limit 20
ip netns exec next tc qdisc add dev s0 root handle 1: htb default 1
ip netns exec next tc class add dev s0 parent 1: classid 1:1 htb rate 200kbit
check "tc attaches rlqos at the next node" \
	ip netns exec next tc qdisc add dev s0 parent 1:1 rlqos limit 20

echo 'DEVICES="q0"' >/etc/paqm/rlqosd
check "start" systemctl start rlqosd
check "it is active" systemctl is-active -q rlqosd
pid=$(systemctl show -P MainPID rlqosd)
same "its process is the user paqm" "$(ps -o user= -p "$pid")" paqm
same "of capabilities it has CAP_NET_ADMIN alone" \
	"$(sed -n 's/^CapEff:\t*//p' "/proc/$pid/status")" 0000000000001000
same "seccomp filters what it does" "$(sed -n 's/^Seccomp:\t*//p' "/proc/$pid/status")" 2
exposure=$(systemd-analyze security --no-pager rlqosd.service | sed -nE 's/.*exposure level.*: ([0-9.]+) .*/\1/p')
within "exposure by systemd's measure, of 10" "$exposure" 0 2

ip netns exec next rlqosd q1 s0 >/tmp/next.json 2>/tmp/next.log &
next=$!
python3 "$here/blast.py" --to 10.7.0.2 --kind rtp --flows 1 --rate 6e5 --seconds 100000 &
blast=$!
loaded() { tc -j -s qdisc show dev q0 | jq -e '.[0] | .. | .downstream? // 0 | . > 0' | grep -q true; }
check "the load of the next node reaches the queue" wait_for loaded
kill "$blast"
wait "$blast" 2>/dev/null
kill "$next"
wait "$next"
same "the next node's rlqosd ends in peace" $? 0
has "it has sent messages" "$(cat /tmp/next.json)" '"sent": *[1-9]'

check "restart" systemctl restart rlqosd
check "it is another process" test "$(systemctl show -P MainPID rlqosd)" != "$pid"
systemctl kill -s KILL rlqosd
check "killed, it comes back" wait_for systemctl is-active -q rlqosd
check "stop" systemctl stop rlqosd
same "no process is left" "$(pgrep -f '^/usr/sbin/rlqosd')" ""
has "at the end it says what it has counted" "$(journalctl -u rlqosd -o cat --no-pager)" '"accepted"'

rm /etc/paqm/rlqosd
tc qdisc del dev q0 root
ip netns del next
ip netns del sink
ip link del q0 2>/dev/null
check "the module unloads" modprobe -r sch_rlqos
