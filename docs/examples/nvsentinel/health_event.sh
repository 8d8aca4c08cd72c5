#!/bin/sh
# Prints a health event about this node in the form of NVSentinel (HealthEvents of
# data-models/protobufs/health_event.proto, as JSON). It prints nothing and returns 2 if nobody knows
# whether the node is fit. --tests none: it starts nothing on the GPUs, because jobs use them.
# STORE_ONLY: NVSentinel keeps the event and changes no node. EXECUTE_REMEDIATION lets it act.
gpus=8 # of each node; where they differ, give the number: health_event.sh 4
strategy=${STRATEGY:-STORE_ONLY}
node=${NODE_NAME:-$(uname -n)}
case $node$strategy in *[!A-Za-z0-9._-]*) echo "no name of a node or strategy" >&2; exit 2 ;; esac
line=$(timeout -k 2 20 gpucheck node --tests none \
    --gpus "${1:-$gpus}" 2>/dev/null </dev/null)
status=$?
case $status,$line in
    0,"gpucheck: fit:"*) fatal=false healthy=true action=NONE code= ;;
    1,"gpucheck: "*)
        code=${line#gpucheck: }
        fatal=true healthy=false action=CONTACT_SUPPORT code="\"${code%%:*}\"" ;;
    *) echo "${line:-gpucheck said nothing, status $status}" >&2; exit 2 ;;
esac
# The line has no character that JSON would have to escape.
cat <<EVENT
{"version": 1, "events": [{
  "version": 1, "agent": "gpucheck", "componentClass": "GPU", "checkName": "GpucheckNode",
  "isFatal": $fatal, "isHealthy": $healthy, "message": "$line", "errorCode": [$code],
  "recommendedAction": "$action", "entitiesImpacted": [], "nodeName": "$node",
  "generatedTimestamp": "$(date -u +%Y-%m-%dT%H:%M:%SZ)", "processingStrategy": "$strategy"
}]}
EVENT
