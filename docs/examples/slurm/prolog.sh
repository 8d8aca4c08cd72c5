#!/bin/bash
# slurm.conf: Prolog=/etc/slurm/gpucheck-prolog.sh, PrologFlags=Alloc, PrologEpilogTimeout=180
#
# slurmd runs this as root before a job starts on a node. Any status but 0 drains the node and
# queues the job again. So the script only returns 1 for an unfit node. A Prolog must not call
# commands of Slurm, which could hold up slurmctld: it leaves the reason in a file, and
# health_check.sh puts it in place of Slurm's "Prolog error".
gpus=8 # of this node; 0 on a node that has none, which is then left alone
# gpucheck must be in one of these folders; a link to it is enough.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
node=${SLURMD_NODENAME:-$(hostname -s)}
logs=/var/log/gpucheck
report=$logs/prolog-$node-${SLURM_JOB_ID:-0}.${SLURM_RESTART_COUNT:-0}.txt

[ "$gpus" -gt 0 ] || exit 0
mkdir -p "$logs"
# --level standard: all GPUs of the node work together, as a job's do. --timeout is less than
# PrologEpilogTimeout, and timeout ends gpucheck in between.
line=$(timeout -k 10 100 gpucheck node --level standard --timeout 80 \
    --gpus "$gpus" -o "$report" 2>"$report.err" </dev/null)
status=$?
# The line as well as the status: a broken installation may also return 1, on every node.
case $status,$line in
    1,"gpucheck: "*) ;;
    0,"gpucheck: fit:"*) rm -f "$report" "$report.err"; exit 0 ;;
    *) exit 0 ;; # nobody knows, and the reports are kept
esac
echo "$line" >"$logs/prolog-$node.reason"
exit 1
