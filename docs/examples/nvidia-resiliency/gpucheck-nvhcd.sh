#!/bin/sh
# What a node health check daemon (nvhcd) of the NVIDIA Resiliency Extension runs for ft_launcher.
# It prints the JSON that ft_launcher reads: fail_count, and failed_checks with the reason. Its
# status is always 0, because ft_launcher takes any other for an unhealthy node: a broken
# installation of gpucheck must not exclude every node. The arguments that ft_launcher sends are
# those of NVIDIA's own script, and are ignored.
# --tests none: it starts nothing on the GPUs, because ranks of the last round may still use them.
gpus=8 # of this node
line=$(timeout -k 2 50 gpucheck node --tests none --gpus "$gpus" \
    2>/dev/null </dev/null)
status=$?
# The line has no character that means anything in JSON.
case $status,$line in
    1,"gpucheck: "*)
        check=${line#gpucheck: }
        printf '{"fail_count": 1, "failed_checks": ["%s"], "message": "%s"}\n' "${check%%:*}" "$line"
        ;;
    0,"gpucheck: "*) printf '{"fail_count": 0, "failed_checks": [], "message": "%s"}\n' "$line" ;;
    *) printf '{"fail_count": 0, "failed_checks": [], "message": "gpucheck gave no verdict, status %s"}\n' "$status" ;;
esac
exit 0
