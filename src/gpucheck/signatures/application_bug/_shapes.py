"""Texts that point to application-bug: sizes and indices that do not fit."""

from gpucheck.signatures.base import Cure, Signature

_LOOK_AT_TENSORS = (
    Cure(
        text=(
            "Look at the device, the shape and the type of the tensors "
            "in the line that the traceback names."
        ),
        zh="检查报错那一行中各张量的设备、形状和类型。",
    ),
)

SIGNATURES = (
    Signature(
        name="gather-sizes",
        literal="world_size",
        pattern=(
            r"(?:output|input) tensor size must be equal to (?:world_size times )?(?:input|output) "
            r"tensor size(?: times world_size)?"
        ),
        weight=84,
        says="The tensors given to a collective have sizes that do not belong together",
        sample="ValueError: output tensor size must be equal to world_size times input tensor size",
        other="world_size times the batch",
    ),
    Signature(
        name="shapes",
        literal="shapes cannot be multiplied",
        pattern=r"mat1 and mat2 shapes cannot be multiplied",
        weight=90,
        says="The program's shapes do not fit",
        sample="RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x512 and 768x10)",
        other="shapes",
        stands=True,
        cures=_LOOK_AT_TENSORS,
    ),
    Signature(
        name="size",
        literal="size of tensor",
        pattern=r"The size of tensor a \(\d{1,9}\) must match the size of tensor b",
        weight=88,
        says="The program's shapes do not fit",
        sample=(
            "RuntimeError: The size of tensor a (3) must match the size "
            "of tensor b (4) at non-singleton dimension 1"
        ),
        other="size of tensor",
        stands=True,
        cures=_LOOK_AT_TENSORS,
    ),
    Signature(
        name="size-mismatch",
        literal="size mismatch",
        pattern=r"size mismatch(?:, m1| for \S{1,120}: copying a param)",
        weight=86,
        says="The program's shapes do not fit, or a checkpoint does not fit the model",
        sample="RuntimeError: size mismatch, m1: [32 x 512], m2: [256 x 10]",
        other="size mismatch",
        stands=True,
        cures=_LOOK_AT_TENSORS,
    ),
    Signature(
        name="cat-sizes",
        literal="sizes of tensors must match",
        pattern=r"Sizes of tensors must match except in dimension",
        weight=86,
        says="The program's shapes do not fit",
        sample="RuntimeError: Sizes of tensors must match except in dimension 1.",
        other="sizes of tensors",
        stands=True,
        cures=_LOOK_AT_TENSORS,
    ),
    Signature(
        name="view",
        literal="is invalid for input of size",
        pattern=r"shape '\[.{1,80}\]' is invalid for input of size",
        weight=84,
        says="The program's shapes do not fit",
        sample="RuntimeError: shape '[2, 3]' is invalid for input of size 7",
        other="is invalid",
        stands=True,
        cures=_LOOK_AT_TENSORS,
    ),
    Signature(
        name="index-self",
        literal="index out of range in self",
        pattern=r"index out of range in self",
        weight=88,
        says="An index of the program is out of range",
        sample="IndexError: index out of range in self",
        other="index out of range",
        stands=True,
    ),
    Signature(
        name="index-range",
        literal="out of range",
        pattern=(
            r"IndexError: (?:Target \d{1,9} is out of bounds|index \d{1,9} "
            r"is out of bounds|list index out of range|Dimension out of "
            r"range)"
        ),
        weight=80,
        says="An index of the program is out of range",
        sample=(
            "IndexError: Dimension out of range (expected to be in range of [-1, 0], but got 1)"
        ),
        other="out of range radio",
        unless=("_get_cuda_arch_flags",),  # torch found no GPU to build for
    ),
    Signature(
        name="divisible",
        literal="divisible by",
        pattern=(
            r"(?:number of attention heads|attention heads|num_heads|world.?size|"
            r"batch.?size).{0,80}(?:must be|is not|not) (?:evenly )?divisible "
            r"by"
        ),
        weight=84,
        says="The program's sizes do not divide",
        sample=(
            "ValueError: Total number of attention heads (14) must be "
            "divisible by tensor parallel size (4)."
        ),
        other="divisible by",
    ),
    Signature(
        name="batch-size",
        literal="to match target batch_size",
        pattern=r"Expected input batch_size \(\d{1,9}\) to match target batch_size",
        weight=86,
        says="The program's shapes do not fit",
        sample="ValueError: Expected input batch_size (32) to match target batch_size (1).",
        other="batch_size",
        stands=True,
    ),
    Signature(
        name="channels",
        literal="given groups=",
        pattern=r"Given groups=\d{1,5}, weight of size",
        weight=86,
        says="The program's shapes do not fit",
        sample=(
            "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], "
            "expected input[1, 4, 224, 224] to have 3 channels"
        ),
        other="groups=2",
        stands=True,
    ),
    Signature(
        name="broadcast",
        literal="doesn't match the broadcast shape",
        pattern=r"doesn't match the broadcast shape",
        weight=84,
        says="The program's shapes do not fit",
        sample=(
            "RuntimeError: output with shape [1, 28, 28] doesn't match "
            "the broadcast shape [3, 28, 28]"
        ),
        other="broadcast shape",
        stands=True,
    ),
    Signature(
        name="expanded-size",
        literal="the expanded size of the tensor",
        pattern=r"The expanded size of the tensor \(\d{1,9}\) must match",
        weight=84,
        says="The program's shapes do not fit",
        sample=(
            "RuntimeError: The expanded size of the tensor (3) must match the existing size (4)"
        ),
        other="expanded size",
        stands=True,
    ),
    Signature(
        name="stack-equal",
        literal="stack expects each tensor",
        pattern=r"stack expects each tensor to be equal size",
        weight=84,
        says="The program's shapes do not fit",
        sample=(
            "RuntimeError: stack expects each tensor to be equal size, "
            "but got [3] at entry 0 and [4] at entry 1"
        ),
        other="stack",
        stands=True,
    ),
    Signature(
        name="state-dict",
        literal="in loading state_dict for",
        pattern=r"Error\(s\) in loading state_dict for",
        weight=82,
        says="A checkpoint does not fit the model",
        sample="RuntimeError: Error(s) in loading state_dict for ResNet:",
        other="state_dict for",
        stands=True,
    ),
)
