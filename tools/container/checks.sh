#!/bin/sh
# Checks of a server and of a scheduler, for a job of CI. Usage:
#   checks.sh [-u URL [-2 SERVERS] [-3 SERVERS] [-k]] [-d DRIVER]
# -u the URL of a file of 100 kB or more; -2 and -3 the shipped servers, comma-separated, of which it
# is to send like one over HTTP/2 and HTTP/3; -k accept any certificate; -d a scheduler, as
# `h3sim conform` takes it. Exit codes: 0 all hold, 1 one does not, 2 bad usage.
set -u
url= over_2= over_3= insecure= driver=
while getopts u:2:3:kd: option; do
    case $option in
        u) url=$OPTARG ;;
        2) over_2=$OPTARG ;;
        3) over_3=$OPTARG ;;
        k) insecure=--insecure ;;
        d) driver=$OPTARG ;;
        *) exit 2 ;;
    esac
done
if [ -z "$over_2$over_3$driver" ] || { [ -n "$over_2$over_3" ] && [ -z "$url" ]; }; then
    echo "usage: checks.sh [-u URL [-2 SERVERS] [-3 SERVERS] [-k]] [-d DRIVER]" >&2
    exit 2
fi

worst=0
check() {
    echo "== h3sim $*"
    h3sim "$@"
    code=$?
    [ "$code" -gt "$worst" ] && worst=$code
}

[ -n "$over_2" ] && check prioritization-test "$url" --like "$over_2" $insecure
[ -n "$over_3" ] && check prioritization-test "$url" --http3 --like "$over_3" $insecure
[ -n "$driver" ] && check conform -- $driver
exit "$worst"
