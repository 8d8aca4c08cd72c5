#!/bin/sh
# A plugin of node-problem-detector. Its convention: 0 all is well, 1 there is a problem, 2 nobody
# knows. The first line of the output becomes the message of the condition.
# --tests none: it starts nothing on the GPUs, because jobs use them at the same time.
gpus=8 # of each node; where they differ, gpucheck.json can give the number to the plugin as "args"
line=$(timeout -k 2 20 gpucheck node --tests none \
    --gpus "${1:-$gpus}" 2>/dev/null </dev/null)
status=$?
echo "${line:-gpucheck: unknown: it said nothing, status $status}"
case $status,$line in
    0,"gpucheck: fit:"*) exit 0 ;;
    1,"gpucheck: "*) exit 1 ;;
    *) exit 2 ;;
esac
