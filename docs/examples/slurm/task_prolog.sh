#!/bin/bash
# slurm.conf: TaskProlog=/etc/slurm/gpucheck-task-prolog.sh
#
# slurmd runs this as the user before each task of srun. Lines that begin with "print" go to the
# output of the job, "export" sets a variable of the task. The first task of a node writes there
# what a static check says of the node. It starts nothing on the GPUs, and holds no task back.
[ "${SLURM_LOCALID:-0}" = 0 ] || exit 0
# SLURM_GPUS_ON_NODE: what the job has of this node. A job without GPUs needs no check of them.
gpus=${SLURM_GPUS_ON_NODE:-0}
[ "$gpus" -gt 0 ] || exit 0
line=$(timeout -k 2 15 gpucheck node --tests none \
    --gpus "$gpus" 2>/dev/null </dev/null)
case $line in
    "gpucheck: "*)
        echo "export GPUCHECK_NODE=$line"
        case $line in "gpucheck: fit:"*) ;; *) echo "print ${SLURMD_NODENAME:-}: $line" ;; esac ;;
esac
exit 0
