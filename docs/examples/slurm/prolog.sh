#!/bin/bash
# slurm.conf: Prolog=/etc/slurm/gpucheck-prolog.sh and PrologFlags=Alloc
#
# slurmd runs this as root before a job starts on a node. Any status but 0 drains the node and
# queues the job again. So the script only returns 1 for a culprit (status 1). A wrong option, a
# misconfiguration, a slow GPU or a missing verdict must not drain the whole cluster.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
log=/var/log/gpucheck-prolog.log

timeout -k 10 100 gpucheck preflight --timeout 80 >"$log" 2>&1 </dev/null
status=$?
[ $status -eq 1 ] && exit 1
exit 0
