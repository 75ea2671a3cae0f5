# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# paqm-meet under the distribution's own service manager: what its unit promises, and two who meet.
# Read by `run`.
echo "# paqm-meet"
check "it runs from its installation on" wait_for systemctl is-active -q paqm-meet
pid=$(systemctl show -P MainPID paqm-meet)
# of DynamicUser=: its name is known where libnss-systemd is installed, its number everywhere
within "its process has a user of its own" "$(ps -o uid= -p "$pid" | tr -d ' ')" 61184 65519
same "and no capability" "$(sed -n 's/^CapEff:\t*//p' "/proc/$pid/status")" 0000000000000000
same "seccomp filters what it does" "$(sed -n 's/^Seccomp:\t*//p' "/proc/$pid/status")" 2
exposure=$(systemd-analyze security --no-pager paqm-meet.service | sed -nE 's/.*exposure level.*: ([0-9.]+) .*/\1/p')
within "exposure by systemd's measure, of 10" "$exposure" 0 2

# meets PORT: two of one name are joined, and what one says reaches the other
meets() {
	python3 - "$1" <<-'END'
		import socket, sys
		def end():
		    one = socket.create_connection(("localhost", int(sys.argv[1])), 20)
		    text = one.makefile("rb")
		    one.sendall(b"meet " + text.readline().split()[2] + b" " + b"5" * 64 + b"\n")
		    return one, text
		(a, said_a), (b, said_b) = end(), end()
		assert (said_a.readline(), said_b.readline()) == (b"first\n", b"second\n")
		a.sendall(b"words\n")
		assert said_b.readline() == b"words\n"
	END
}
check "two meet" meets 5091
mkdir -p /etc/paqm
echo 'OPTIONS="--listen localhost:6091 --most 4096"' >/etc/paqm/paqm-meet
check "restart with options, as many files as they need" systemctl restart paqm-meet
check "two meet there" meets 6091
systemctl kill -s KILL paqm-meet
sleep 1
check "killed, it comes back" wait_for systemctl is-active -q paqm-meet
check "stop" systemctl stop paqm-meet
has "at the end it says what it has counted" "$(journalctl -u paqm-meet -o cat --no-pager)" '"joined": 1'
