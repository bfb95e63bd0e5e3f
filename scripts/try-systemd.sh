#!/usr/bin/env bash
# Tries a Debian package under a real systemd: in a Debian 12 root, booted by systemd-nspawn, with a network of its own.
# By hand: it needs root, debootstrap, systemd-container, and for a new root the network.
#
#   scripts/try-systemd.sh PACKAGE.deb [ROOT]             # ROOT is kept: the next time takes a minute
set -euo pipefail

# Everything below `inside` runs in the root, the rest outside of it.
file=/etc/streamgate/streamgate.yaml
ok() { echo "ok: $1"; }
fail() {
    echo "FAILED: $1" >&2
    journalctl -u streamgate -n 30 --no-pager -o cat >&2
    exit 1
}
expect() { if "${@:2}"; then ok "$1"; else fail "$1"; fi; }
eventually() {
    for _ in $(seq 100); do
        if "${@:2}"; then ok "$1" && return; fi
        sleep 0.1
    done
    fail "$1"
}
main() { systemctl show -P MainPID streamgate; }
is() { [ "$(systemctl show -P "$1" streamgate)" = "$2" ]; }
moved() { [ "$(main)" != "$1" ] && is ActiveState active; }
says() { systemctl show -P StatusText streamgate | grep -q -- "$1"; }
refuses_to() { ! nsenter -t "$(main)" -m touch "$1" 2>/dev/null; }

# A stream of $2 tokens, one each 50 ms, in the background; `whole` waits for it.
stream() {
    curl -sN --max-time 60 127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' >"/tmp/$1" \
        -d '{"model": "sim-model", "stream": true, "max_tokens": '"$2"', "messages": [{"role": "user", "content": "hi"}]}' &
    streams[$1]=$!
    for _ in $(seq 100); do if [ -s "/tmp/$1" ]; then return; fi; sleep 0.1; done
    fail "stream $1 begins"
}
whole() {
    wait "${streams[$1]}" || fail "stream $1 is cut"
    [ "$(grep -c '"content":"tok' "/tmp/$1")" = "$2" ] && grep -q '\[DONE\]' "/tmp/$1" || fail "stream $1 is whole"
    ok "  its stream of $2 tokens is whole"
}
hand_over() {
    local before
    before=$(main)
    systemctl kill -s QUIT --kill-whom=main streamgate
    eventually "SIGQUIT: the main process is another one" moved "$before"
    expect "  and a child of systemd" [ "$(ps -o ppid= -p "$(main)" | tr -d ' ')" = 1 ]
}

inside() {
    declare -gA streams=()
    apt-get install -y -q "/root/$1" >/dev/null 2>&1 || fail "apt installs it"
    eventually "installed, it runs and is ready" streamgate health
    expect "the service is enabled, the socket is not" \
        [ "$(systemctl is-enabled streamgate.service streamgate.socket | xargs)" = "enabled disabled" ]

    systemd-analyze security streamgate --no-pager | tail -n 1
    local status
    status=/proc/$(main)/status
    expect "one capability" grep -q '^CapBnd:.*0000000000000400$' "$status"
    expect "system calls are filtered" grep -q '^Seccomp:.*2$' "$status"
    for path in /etc/x /usr/bin/x /root/x /home/x /var/lib/x; do expect "not written: $path" refuses_to "$path"; done
    local memory
    memory=$(($(awk '/MemTotal/ { print $2 }' /proc/meminfo) * 1024))
    expect "the memory is the machine's" \
        grep -q "limit.*} $memory\$" <(curl -s 127.0.0.1:9090/metrics | grep memory_bytes)

    systemd-run -q --unit=engine streamgate sim --listen 127.0.0.1:9101 --inter-token 50ms --tokens 1000
    echo 'ENGINE_TOKEN=sk-a-secret' >/etc/streamgate/streamgate.env
    chmod 600 /etc/streamgate/streamgate.env
    cat >$file <<'YAML'
server:
  listen:
    - { address: 127.0.0.1:8080 }
    - { address: 127.0.0.1:443 }
  admin: { listen: 127.0.0.1:9090 }
  upgrade_socket: /run/streamgate/upgrade.sock
  shutdown: { lame_duck: 1s, drain: 30s }
clusters:
  sim:
    auth: { bearer_env: ENGINE_TOKEN }
    backends: [{ name: sim-1, url: "http://127.0.0.1:9101" }]
routes: [{ name: chat, match: { path: /v1/chat/completions }, cluster: sim }]
YAML
    systemctl restart streamgate || fail "it starts with a secret and port 443"
    expect "port 443 is served" curl -s -o /dev/null 127.0.0.1:443

    cp $file /root/good.yaml
    stream reloaded 80
    sed -i 's/sim-1/sim-one/' $file
    systemctl reload streamgate
    eventually "reload: a good file is in force" says 'generation 2'
    echo 'nonsense: 1' >>$file
    systemctl reload streamgate
    eventually "reload: a bad one is refused, with words" says 'refused.*nonsense'
    expect "  which the journal has as errors" grep -q nonsense <(journalctl -u streamgate -p err -o cat)
    expect "  and the service is active" is ActiveState active
    whole reloaded 80

    systemctl restart streamgate 2>/dev/null && fail "it starts with a bad file"
    sleep 2
    expect "exit code 64 is not tried again" is NRestarts 0
    cp /root/good.yaml $file
    systemctl start streamgate || fail "it starts with the good file at once"

    local before
    before=$(main)
    kill -KILL "$before"
    eventually "killed, it is started again" moved "$before"

    stream old 120
    hand_over
    stream new 20
    systemctl stop streamgate
    ok "stop waits for the streams of both processes"
    whole old 120
    whole new 20
    expect "stopped is inactive" is ActiveState inactive
    systemctl start streamgate
    stream old 200
    hand_over
    before=$(main)
    kill -KILL "$before"
    eventually "a successor that is killed is started again, whatever the old one does" moved "$before"
    wait "${streams[old]}" || ok "  its streams are cut"
    hand_over
    stream stopped 60
    systemctl stop streamgate
    ok "stop waits for a successor's stream"
    whole stopped 60

    mkdir -p /etc/systemd/system/streamgate.socket.d
    printf '[Socket]\nListenStream=\nListenStream=127.0.0.1:8080\n' >/etc/systemd/system/streamgate.socket.d/address.conf
    systemctl daemon-reload
    systemctl enable -q --now streamgate.socket
    stream started 10
    ok "with the socket unit a client starts the service"
    whole started 10
    (sleep 0.3 && curl -s -o /dev/null 127.0.0.1:8080/) &
    systemctl restart streamgate
    wait $! || fail "a client waits for the restart"
    ok "with the socket unit a client waits for a restart"
    hand_over
    systemctl disable -q --now streamgate.socket

    rm -rf /tmp/deb
    dpkg-deb -R "/root/$1" /tmp/deb
    sed -i 's/^Version: .*/&+newer/' /tmp/deb/DEBIAN/control
    dpkg-deb -b -Znone /tmp/deb /root/newer.deb >/dev/null
    stream upgraded 200
    before=$(main)
    apt-get install -y -q /root/newer.deb >/dev/null 2>&1 || fail "apt upgrades it"
    eventually "a newer package takes over" moved "$before"
    whole upgraded 200
    stream removed 200
    apt-get remove -y -q streamgate >/dev/null 2>&1 || fail "apt removes it"
    ok "a removal waits for its streams"
    whole removed 200
    apt-get purge -y -q streamgate >/dev/null 2>&1 || fail "apt purges it"
    expect "purged: no log, no file, no link" \
        [ -z "$(ls -d /var/log/streamgate $file /etc/systemd/system/*/streamgate.* 2>/dev/null)" ]
    expect "no secret is in the journal" [ -z "$(journalctl | grep sk-a-secret)" ]
}

if [ "${1:-}" = inside ]; then
    inside "$2"
    exit
fi

package=${1:?"the package: make deb"} root=${2:-/var/tmp/streamgate-systemd}
if [ ! -e "$root/etc/debian_version" ]; then
    packages=systemd,systemd-sysv,dbus,curl,ca-certificates,procps
    debootstrap --variant=minbase --include=$packages bookworm "$root"
fi
cp "$package" "$0" "$root/root/"
options=(--register=no --keep-unit --private-network --resolv-conf=off --timezone=off --console=pipe)
SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn -q -b -D "$root" "${options[@]}" </dev/null >/dev/null 2>&1 &
nspawn=$!
# SIGRTMIN+4 to its process 1 is `poweroff`.
trap 'kill -RTMIN+4 "$(pgrep -P $nspawn)" && wait $nspawn' EXIT
run() {
    local first
    first=$(pgrep -P $nspawn)
    nsenter -t "$first" -m -u -i -n -p -C -r"/proc/$first/root" -w"/proc/$first/root" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 "$@"
}
for _ in $(seq 100); do
    if run systemctl is-system-running --wait >/dev/null 2>&1; then break; fi
    sleep 0.2
done
run systemctl --version | head -n 1
run bash "/root/$(basename "$0")" inside "$(basename "$package")"
