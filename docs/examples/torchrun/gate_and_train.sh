#!/bin/sh
# torchrun --max-restarts=3 ... --no-python ./gate_and_train.sh train.py ARGUMENTS
#
# Tests the GPUs before each start of the training, also before a restart. Not only before restarts:
# each node counts its own, so a node that has joined later would not take part in the test.
name=gpucheck-${TORCHELASTIC_RUN_ID:-run}.${TORCHELASTIC_RESTART_COUNT:-0}
gpucheck preflight --timeout 120 -o "$name.txt" --status-file "$name.status" || exit
exec python "$@"
