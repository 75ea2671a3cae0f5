# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# A trial on a router, under the distribution's own service manager, up to a restart. Read by
# `installed.sh`; `restarted.sh` goes on.
echo "# paqm-trial"
trial_pid() { systemctl show -P MainPID paqm-trial@eth0; }
other_process() { [ "$(trial_pid)" != 0 ] && [ "$(trial_pid)" != "$1" ]; }
trial_says() { journalctl -u paqm-trial@eth0 -o cat --no-pager | grep -q "$1"; }

ip link set eth0 up
tc qdisc show dev eth0 >/root/found
has "check says that the queues can be attached" \
	"$(paqm-trial check eth0 --bandwidth 3mbit)" '^ok +P-AQM and the baseline can be attached'
other=a-longer-name-of-eth0
ip link property add dev eth0 altname $other
has "check knows a device by another name, too" \
	"$(paqm-trial check $other --bandwidth 3mbit)" '^ok +P-AQM and the baseline can be attached'
check "a trial begins, by that name" \
	paqm-trial router $other --bandwidth 3mbit --alternate none
check "P-AQM stands there at once" stands 'paqm 7a1: root'
has "the service manager knows it" "$(systemctl status paqm-trial@eth0)" 'Status: "attached: paqm"'
check "P-AQM is paused, by that name" paqm-trial end $other --pause
same "what stood there before is there" "$(tc qdisc show dev eth0)" "$(cat /root/found)"
check "and goes on" paqm-trial router $other --resume
check "with P-AQM at once" stands 'paqm 7a1: root'
same "it comes after a restart" "$(systemctl is-enabled paqm-trial@eth0)" enabled
pid=$(trial_pid)
systemctl kill -s KILL paqm-trial@eth0
check "killed, it comes back" wait_for other_process "$pid"
check "and P-AQM with it" wait_for stands 'paqm 7a1: root'
driver=$(basename "$(readlink /sys/class/net/eth0/device/driver)")
modprobe -r "$driver"
check "a device that goes is told of" wait_for trial_says 'trying again'
check "the device is back" sh -c "modprobe $driver && udevadm settle"
check "and P-AQM with it" wait_for stands 'paqm 7a1: root'

printf '[main]\nno-auto-default=*\n' >/etc/NetworkManager/conf.d/paqm-test.conf
check "NetworkManager starts" systemctl start NetworkManager
check "it takes the device of the trial" nmcli connection add type ethernet ifname eth0 \
	con-name paqm-test autoconnect no ipv4.method manual ipv4.addresses 192.0.2.1/24 \
	ipv6.method disabled
for _ in 1 2; do
	check "brings it up" nmcli connection up paqm-test
	check "and leaves P-AQM there" stands 'paqm 7a1: root'
	check "brings it down" nmcli connection down paqm-test
	check "and leaves P-AQM there" stands 'paqm 7a1: root'
done
check "a queue of NetworkManager's own" nmcli connection modify paqm-test tc.qdiscs "root pfifo"
check "is put there" nmcli connection up paqm-test
check "told of" wait_for trial_says 'replaced by another program'
check "and replaced by P-AQM" wait_for stands 'paqm 7a1: root'
nmcli connection delete paqm-test >/dev/null
systemctl stop NetworkManager NetworkManager-dispatcher
rm -f /etc/NetworkManager/conf.d/paqm-test.conf
check "NetworkManager gone, P-AQM stands there" wait_for stands 'paqm 7a1: root'
ip link set eth0 up
check "the package is installed once more" \
	apt-get -q -y --reinstall install "$here"/paqm-trial_*.deb
check "P-AQM stands there still" wait_for stands 'paqm 7a1: root'
