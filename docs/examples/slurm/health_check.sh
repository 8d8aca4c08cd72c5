#!/bin/bash
# slurm.conf: HealthCheckProgram=/etc/slurm/gpucheck-health.sh
#             HealthCheckInterval=3600 and HealthCheckNodeState=IDLE
#
# slurmd kills this script after 60 seconds and ignores its status, so the script drains the node.
# IDLE, which drained nodes without jobs are as well: the self-tests would disturb a job, and would take the load of the job for a fault.
# gpucheck must be in one of these folders; a link to it is enough.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
node=${SLURMD_NODENAME:-$(hostname -s)}
logs=/var/log/gpucheck
gpus=8 # of this node; 0 on a node that has none, which is then left alone
report=$logs/health-$node-$(date +%Y%m%dT%H%M%S).txt

[ "$gpus" -gt 0 ] || exit 0
mkdir -p "$logs"
exec 9>"$logs/health-$node.lock" # slurmd starts the next run even if this one has not ended
flock -n 9 || exit 0

# What prolog.sh has found, in place of Slurm's own reason.
reason=$logs/prolog-$node.reason
if [ -s "$reason" ]; then
    case $(scontrol show node --oneliner "$node") in
        *" Reason=Prolog error"*)
            scontrol update NodeName="$node" State=DRAIN Reason="$(cat "$reason")" ;;
    esac
    rm -f "$reason"
fi

# Ten seconds are enough as a rule. GPUs without persistence mode may need the rest.
line=$(timeout -k 3 50 gpucheck node --timeout 40 \
    --gpus "$gpus" -o "$report" 2>"$report.err" </dev/null 9>&-)
status=$?
# The line as well as the status: a broken installation may also return 1, on every node.
case $status,$line in
    1,"gpucheck: "*) ;;
    0,"gpucheck: fit:"*) rm -f "$report" "$report.err"; exit 0 ;;
    *) exit 0 ;; # nobody knows, and the reports are kept
esac
# The reason of somebody who has drained the node before stays.
case $(scontrol show node --oneliner "$node") in
    *" State="*DRAIN* | *" State="*DOWN* | *" State="*MAINT*) exit 0 ;;
esac
scontrol update NodeName="$node" State=DRAIN Reason="$line"
exit 0
