#!/bin/bash
# slurm.conf: HealthCheckProgram=/etc/slurm/gpucheck-health.sh
#             HealthCheckInterval=3600 and HealthCheckNodeState=IDLE
#
# slurmd kills this script after 60 seconds and ignores its status, so the script drains the node.
# IDLE: the test would disturb a job, and would take the load of the job for a fault.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
log=/var/log/gpucheck-health.log
node=${SLURMD_NODENAME:-$(hostname -s)}

exec 9>"$log.lock" # slurmd starts the next run even if this one has not ended
flock -n 9 || exit 0

timeout -k 3 56 gpucheck preflight --timeout 50 --no-color >"$log" 2>&1 </dev/null 9>&-
status=$?
if [ $status -eq 1 ]; then
    why=$(grep -m 1 '^BROKEN' "$log" | tr -s ' ' | cut -c 1-100)
    scontrol update NodeName="$node" State=DRAIN Reason="gpucheck: ${why:-status 1}"
fi
exit 0
