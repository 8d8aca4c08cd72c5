"""Texts that point to application-bug: autograd and DistributedDataParallel."""

from gpucheck.signatures.base import Cure, Signature

SIGNATURES = (
    Signature(
        name="ddp-reduction",
        literal="finished reduction in the prior iteration",
        pattern=r"expected to have finished reduction in the prior iteration",
        weight=92,
        says="DistributedDataParallel: parameters of the model take no part in the loss",
        sample=(
            "RuntimeError: Expected to have finished reduction in the "
            "prior iteration before starting a new one."
        ),
        other="reduction",
        stands=True,
        cures=(
            Cure(
                text=(
                    "Let every parameter take part in the loss, or construct "
                    "DistributedDataParallel with find_unused_parameters=True."
                ),
                zh=(
                    "让所有参数都参与损失计算，或在 DistributedDataParallel "
                    "中设置 find_unused_parameters=True。"
                ),
            ),
        ),
    ),
    Signature(
        name="ready-twice",
        literal="marked as ready twice",
        pattern=(
            r"mark(?:ed)? (?:a variable|as) ready (?:only once|twice)|parameter "
            r"at index \d{1,6} .{0,120}has been marked as ready twice"
        ),
        weight=90,
        says="DistributedDataParallel: a parameter is used twice",
        sample=(
            "RuntimeError: Expected to mark a variable ready only once. "
            "Parameter has been marked as ready twice."
        ),
        other="ready",
        stands=True,
    ),
    Signature(
        name="inplace",
        literal="modified by an inplace operation",
        pattern=r"modified by an inplace operation",
        weight=88,
        says="The program changes a tensor that autograd needs",
        sample=(
            "RuntimeError: one of the variables needed for gradient computation "
            "has been modified by an inplace operation"
        ),
        other="inplace",
        stands=True,
    ),
    Signature(
        name="graph-twice",
        literal="backward through the graph a second time",
        pattern=r"backward through the graph a second time",
        weight=88,
        says="The program calls backward twice",
        sample="RuntimeError: Trying to backward through the graph a second time",
        other="the graph",
        stands=True,
    ),
    Signature(
        name="no-grad",
        literal="does not require grad",
        pattern=r"element 0 of tensors does not require grad",
        weight=86,
        says="The loss depends on no parameter that requires a gradient",
        sample=(
            "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
        ),
        other="does not require grad",
        stands=True,
    ),
    Signature(
        name="ddp-unused-shape",
        literal="params",
        pattern=(
            r"DDP expects same model across all ranks|appears not to match "
            r"sizes of the same param in process"
        ),
        weight=82,
        says="The model differs between ranks",
        sample=(
            "RuntimeError: [1]: params[0] in this process with sizes [4] "
            "appears not to match sizes of the same param in process 0."
        ),
        other="params",
    ),
    Signature(
        name="ddp-same-model",
        literal="ddp expects same model",
        pattern=r"DDP expects same model across all ranks",
        weight=84,
        says="The model differs between ranks",
        sample=(
            "RuntimeError: DDP expects same model across all ranks, but "
            "Rank 0 has 10 params, while rank 1 has inconsistent 12 params."
        ),
        other="DDP",
    ),
    Signature(
        name="unused-lightning",
        literal="parameters that were not used",
        pattern=r"parameters that were not used in producing",
        weight=86,
        says="DistributedDataParallel: parameters of the model take no part in the loss",
        sample=(
            "It looks like your LightningModule has parameters that were "
            "not used in producing the loss"
        ),
        other="parameters that were",
        stands=True,
    ),
    Signature(
        name="scalar-grad",
        literal="implicitly created only for scalar",
        pattern=r"grad can be implicitly created only for scalar outputs",
        weight=84,
        says="backward is called on something that is no single number",
        sample="RuntimeError: grad can be implicitly created only for scalar outputs",
        other="scalar",
        stands=True,
    ),
)
