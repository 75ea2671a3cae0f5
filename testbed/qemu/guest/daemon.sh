# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# paqmd under the distribution's own service manager: what its unit promises, and messages of the
# real qdisc all the way to a sender of media. Read by `run`.
echo "# paqmd"
for file in /usr/bin/paqmctl /usr/sbin/paqmd /etc/paqm/paqmd.conf \
	/usr/share/bash-completion/completions/paqmctl /usr/share/bash-completion/completions/paqmd \
	/usr/share/man/man1/paqmctl.1.gz /usr/share/man/man5/paqmd.conf.5.gz \
	/usr/share/man/man8/paqmd.8.gz; do
	has "paqmd has $file" "$(dpkg -L paqmd)" "^$file$"
done
daemon_pid() { systemctl show -P MainPID paqmd; }
flow() { paqmctl -j flows | jq -e ".flows[0] | $1"; }
for unit in paqmd.service paqmd-client.socket paqmd-control.socket; do
	check "$unit is enabled" systemctl is-enabled -q "$unit"
	check "$unit is active" wait_for systemctl is-active -q "$unit"
done
same "its processes are the user paqm" \
	"$(ps -o user= -p "$(pgrep -d, -f '^/usr/sbin/paqmd')" | sort | uniq -c | xargs)" \
	"3 paqm"
for pid in $(pgrep -f '^/usr/sbin/paqmd'); do
	name=$(cat "/proc/$pid/comm")
	same "$name has no capability" \
		"$(sed -n 's/^CapEff:\t*//p' "/proc/$pid/status")" 0000000000000000
	same "seccomp filters what $name does" "$(sed -n 's/^Seccomp:\t*//p' "/proc/$pid/status")" 2
done
exposure=$(systemd-analyze security --no-pager paqmd.service | sed -nE 's/.*exposure level.*: ([0-9.]+) .*/\1/p')
within "exposure by systemd's measure, of 10" "$exposure" 0 1.5
check "paqmctl answers root" paqmctl show
out=$(setpriv --reuid=65534 --regid=65534 --clear-groups paqmctl show 2>&1)
has "paqmctl is refused to others" "$out" 'control.sock.*Permission denied'
check "paqmctl answers members of the group" \
	setpriv --reuid=65534 --regid="$(getent group paqm | cut -d: -f3)" --clear-groups paqmctl show

echo "use sideways" >>/etc/paqm/paqmd.conf
out=$(systemctl reload paqmd 2>&1)
same "a wrong setting: reload fails" $? 1
has "the journal names the line" "$(journalctl -u paqmd -o cat --no-pager)" \
	'/etc/paqm/paqmd.conf:[0-9]+: .*sideways'
sed -i '$d' /etc/paqm/paqmd.conf
check "reload" systemctl reload paqmd
sleep 2
reloaded=$(date +%s)

# host: sender of media; router with the real qdisc; receiver
ip netns add router
ip netns add receiver
ip link add m0 type veth peer name m1 netns router
ip -n router link add r0 type veth peer name r1 netns receiver
ip addr add 10.4.0.2/24 dev m0
ip link set m0 up
ip -n router addr add 10.4.0.1/24 dev m1
ip -n router addr add 10.5.0.1/24 dev r0
ip -n receiver addr add 10.5.0.2/24 dev r1
ip -n router link set m1 up
ip -n router link set r0 up
ip -n receiver link set r1 up
ip -n receiver route add default via 10.5.0.1
ip route add 10.5.0.0/24 via 10.4.0.1
ip netns exec router sysctl -qw net.ipv4.ip_forward=1
check "tc attaches paqm in the router" ip netns exec router tc qdisc replace dev r0 root \
	paqm bandwidth 1mbit feedback icmp
python3 /usr/share/doc/libpaqmclient-dev/examples/follow.py 25004 10.5.0.2 5004 >/tmp/advice &
follow=$!
# what was sent before is not known to paqmd, and a message about it would be refused
check "the sender registers" wait_for flow .cookie
python3 "$here/blast.py" --to 10.5.0.2 --kind rtp --flows 1 --rate 6e5 --seconds 100000 &
blast=$!
check "the sender hears a rate" wait_for grep -qE '^[0-9]{5,7} 10\.[45]\.0\.1$' /tmp/advice
within "it is that of the link" "$(flow .rate_bps)" 800000 1000000
check "messages are believed" flow '.accepted > 0'
has "paqmctl why tells" "$(paqmctl -j why)" '"advice"'
has "metrics end as OpenMetrics do" "$(paqmctl metrics | tail -n 1)" '^# EOF$'
same "it has nothing to complain about" "$(journalctl _SYSTEMD_UNIT=paqmd.service -p warning \
	--since "@$reloaded" -q -o cat --no-pager)" ""

pid=$(daemon_pid)
check "restart" systemctl restart paqmd
check "it is another process" test "$(daemon_pid)" != "$pid"
check "the sender has registered again" wait_for flow '.accepted > 0'
check "the sender has not ended" kill -0 "$follow"
systemctl kill -s KILL paqmd
check "killed, it comes back" wait_for systemctl is-active -q paqmd
check "and the sender with it" wait_for flow '.accepted > 0'
check "stop" systemctl stop paqmd.service paqmd-client.socket paqmd-control.socket
same "no process is left" "$(pgrep -f '^/usr/sbin/paqmd')" ""
out=$(paqmctl show 2>&1)
has "paqmctl says that there is no daemon" "$out" 'control.sock'
check "start" systemctl start paqmd
check "it serves again" wait_for flow '.accepted > 0'

kill "$blast" "$follow"
wait "$blast" "$follow" 2>/dev/null
ip netns exec router tc qdisc del dev r0 root
ip netns del router
ip netns del receiver
ip link del m0 2>/dev/null
check "modules unload after messages" modprobe -r sch_paqm paqm_feedback
has "the dissector lies where Wireshark looks" "$(dpkg -L paqm-wireshark)" \
	'/usr/lib/.*/wireshark/plugins/paqm.lua$'
