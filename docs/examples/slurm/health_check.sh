#!/bin/bash
# slurm.conf: HealthCheckProgram=/etc/slurm/gpucheck-health.sh
#             HealthCheckInterval=3600 and HealthCheckNodeState=IDLE
#
# slurmd gives this 60 seconds and does not look at what it returns: it drains the node itself.
# IDLE, since a test of the GPUs would disturb a job, and a job would be taken for a fault.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
log=/var/log/gpucheck-health.log
node=${SLURMD_NODENAME:-$(hostname -s)}

exec 9>"$log.lock" # slurmd starts the next one whether or not this one has ended
flock -n 9 || exit 0

timeout -k 3 56 gpucheck preflight --timeout 50 --no-color >"$log" 2>&1 </dev/null 9>&-
status=$?
if [ $status -eq 1 ]; then
    why=$(grep -m 1 '^BROKEN' "$log" | tr -s ' ' | cut -c 1-100)
    scontrol update NodeName="$node" State=DRAIN Reason="gpucheck: ${why:-status 1}"
fi
exit 0
