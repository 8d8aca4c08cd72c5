"""Texts that point to nvlink-down."""

from gpucheck.findings import Severity
from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="nvlink-down",
    zh="NVLink 链路断开",
    signatures=(
        Signature(
            name="inactive",
            literal="inactive",
            pattern=r"Link \d{1,2}: <?inactive",
            weight=78,
            says="An NVLink is down",
            sample="\t Link 3: <inactive>",
            other="inactive user",
            severity=Severity.WARNING,
        ),
        Signature(
            name="words",
            literal="nvlink",
            pattern=(
                r"nvlinks?(?![-_]).{0,60}(?:is|are|was)? ?(?:down|inactive|"
                r"not active|failed|missing)"
            ),
            weight=70,
            says="An NVLink is down",
            sample="two NVLinks are down on GPU 3",
            other="nvlink is fine",
            severity=Severity.WARNING,
        ),
    ),
    cures=(
        Cure(
            text=(
                "Look at the links; reset the GPUs or restart, then have the "
                "bridge or board looked at."
            ),
            zh="查看链路；重置 GPU 或重启，之后检查桥接器或主板。",
            commands=("nvidia-smi nvlink --status",),
        ),
    ),
)
