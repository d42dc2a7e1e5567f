#!/bin/bash
# Stands in for the docker client: create, start and stop only; runs a container's command as a plain process.
# STAND_IN_STATE is a directory for what it must remember, STAND_IN_LOGS one for the output of each container.
set -u

state=$STAND_IN_STATE
mkdir -p "$state"

skip_options() { # sets name when one of the options is --name=
    while [[ ${1:-} == --* ]]; do
        [[ $1 == --name=* ]] && name=${1#--name=}
        shift
    done
    rest=("$@")
}

name=
skip_options "$@"
verb=${rest[0]}

case $verb in
create)
    skip_options "${rest[@]:1}"
    command=("${rest[@]:1}") # without the image
    if [[ -e $state/$name ]]; then
        echo "Error response from daemon: Conflict. The container name \"/$name\" is already in use" >&2
        exit 1
    fi
    id=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
    printf '%s\n' "${command[@]}" >"$state/$id"
    ln -s "$id" "$state/$name"
    echo "$id"
    ;;
start)
    id=${!#}
    mapfile -t command <"$state/$id"
    for link in "$state"/srj-*; do
        [[ -L $link && $(readlink "$link") == "$id" ]] && name=${link##*/}
    done
    setsid "${command[@]}" <&0 > >(tee -a "$STAND_IN_LOGS/container-$name.log") 2>&1 &
    pid=$!
    echo "$pid" >"$state/$id.pid"
    { wait "$pid"; } 2>/dev/null
    code=$?
    for link in "$state"/srj-*; do
        [[ $(readlink "$link") == "$id" ]] && rm -f "$link"
    done
    exit $code
    ;;
stop)
    name=${!#}
    if [[ ! -e $state/$name ]]; then
        echo "Error response from daemon: No such container: $name" >&2
        exit 1
    fi
    kill -TERM -- "-$(cat "$state/$(readlink "$state/$name").pid")"
    rm -f "$state/$name"
    echo "$name"
    ;;
esac
