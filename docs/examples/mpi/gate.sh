#!/bin/bash
# gate.sh HOSTFILE COMMAND...: tests the GPUs of all hosts, then runs the command on them by mpirun.
#
# The hosts are those of a hostfile of Open MPI: a line "HOST slots=8" for each. The command starts
# only after a pass. A host that is broken is named, and nothing is run.
hosts=$1
shift
count=$(grep -c '^[^#[:space:]]' "$hosts")
first=$(sed -n '/^[^#[:space:]]/{s/[[:space:]].*//p;q}' "$hosts")
run=gpucheck-$(date +%Y%m%dT%H%M%S)-$$

# One task a host takes all its GPUs. mpirun would give a task one core: --bind-to none.
mpirun --hostfile "$hosts" -np "$count" --map-by ppr:1:node --bind-to none ${GATE_MPIRUN:-} \
    gpucheck preflight --master "$first" --timeout 300 \
    -o "$PWD/$run.txt" --status-file "$PWD/$run.status"
of_mpirun=$?

# The verdict is what task 0 wrote. mpirun may return the status of a task that it has ended.
status=3
[ "$of_mpirun" -ne 2 ] || status=2
[ ! -s "$run.status" ] || read -r status <"$run.status"
if [ "$status" -ne 0 ]; then
    echo "gate: status $status, $run.txt"
    exit "$status"
fi
exec mpirun --hostfile "$hosts" ${GATE_MPIRUN:-} "$@"
