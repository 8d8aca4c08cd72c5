#!/bin/sh
# Gives each node whose condition GpuUnfit is True a taint, and takes it away where it is False.
# Run it from a machine whose kubectl may patch nodes, or from a CronJob. A condition that is
# Unknown changes nothing. The key is this script's own: a taint that a person set, such as
# gpucheck/culprit, stays.
key=gpucheck/unfit
columns='{.metadata.name} {.status.conditions[?(@.type=="GpuUnfit")].status} {.spec.taints[*].key}'
nodes=$(kubectl get nodes -o jsonpath="{range .items[*]}$columns{\"\\n\"}{end}") || exit 1
printf '%s\n' "$nodes" | while read -r node unfit taints; do
    case "$unfit,  $taints " in
        "True, "*" $key "*) ;; # it has the taint already
        "True, "*) kubectl taint nodes "$node" "$key=true:NoSchedule" ;;
        "False, "*" $key "*) kubectl taint nodes "$node" "$key-" ;;
    esac
done
