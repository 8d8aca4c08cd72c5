"""Texts that point to application-bug: devices and data types that do not fit."""

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
        name="same-device",
        literal="on the same device",
        pattern=(
            r"expected all tensors to be on the same device|(?:tensors?|"
            r"arguments?).{0,60}(?:to be )?on the same (?:device|GPU)"
        ),
        weight=90,
        says="The program mixes tensors of different devices",
        sample=(
            "RuntimeError: Expected all tensors to be on the same device, "
            "but found at least two devices, cuda:0 and cpu!"
        ),
        other="on the same device rank",
        stands=True,
        cures=(
            Cure(
                text=(
                    "Move model and data to the same device before they "
                    "meet, for example with x.to(weight.device)."
                ),
                zh="在使用前把模型和数据移到同一设备，例如 x.to(weight.device)。",
            ),
        ),
    ),
    Signature(
        name="input-type",
        literal="should be the same",
        pattern=(
            r"Input type \(.{1,60}\) and (?:weight|bias) type \(.{1,60}\) "
            r"should be the same|type torch\.\w{0,5}\.?\w{1,20}Tensor but "
            r"found type"
        ),
        weight=90,
        says="The program mixes tensors of different devices or types",
        sample=(
            "RuntimeError: Input type (torch.cuda.FloatTensor) and weight "
            "type (torch.FloatTensor) should be the same"
        ),
        other="should be the same",
        stands=True,
        cures=_LOOK_AT_TENSORS,
    ),
    Signature(
        name="scalar-type",
        literal="expected scalar type",
        pattern=(
            r"expected scalar type \w{3,20} but found \w{3,20}|expected "
            r"(?:m1 and m2|mat1 and mat2) to have the same dtype"
        ),
        weight=86,
        says="The program mixes data types",
        sample="RuntimeError: expected scalar type Half but found Float",
        other="scalar type",
        stands=True,
        cures=_LOOK_AT_TENSORS,
    ),
    Signature(
        name="same-dtype",
        literal="to have the same dtype",
        pattern=r"to have the same dtype",
        weight=86,
        says="The program mixes data types",
        sample=(
            "RuntimeError: mat1 and mat2 to have the same dtype, but got: float != c10::BFloat16"
        ),
        other="dtype",
        stands=True,
        cures=_LOOK_AT_TENSORS,
    ),
    Signature(
        name="found-dtype",
        literal="found dtype",
        pattern=r"Found dtype \w{3,12} but expected \w{3,12}",
        weight=84,
        says="The program mixes data types",
        sample="RuntimeError: Found dtype Double but expected Float",
        other="found dtype",
        stands=True,
    ),
    Signature(
        name="object-type",
        literal="expected object of",
        pattern=(
            r"Expected object of (?:scalar type|backend|device type|type) "
            r"\S{1,40} but got"
        ),
        weight=84,
        says="The program mixes devices or data types",
        sample=(
            "RuntimeError: Expected object of device type cuda but got "
            "device type cpu for argument #1 'self'"
        ),
        other="expected object of art",
        stands=True,
    ),
    Signature(
        name="argument-type",
        literal="expected tensor for argument",
        pattern=r"Expected tensor for argument #\d{1,2}",
        weight=84,
        says="The program mixes devices or data types",
        sample=(
            "RuntimeError: Expected tensor for argument #1 'indices' to "
            "have scalar type Long; but got torch.FloatTensor"
        ),
        other="expected tensor",
        stands=True,
    ),
    Signature(
        name="cuda-to-numpy",
        literal="device type tensor to numpy",
        pattern=r"can't convert cuda(?::\d{1,2})? device type tensor to numpy",
        weight=86,
        says="A tensor on the GPU is converted to NumPy: copy it with .cpu() first",
        sample="TypeError: can't convert cuda:0 device type tensor to numpy.",
        other="tensor to numpy",
        stands=True,
    ),
    Signature(
        name="dp-device",
        literal="parameters and buffers on device",
        pattern=r"module must have its parameters and buffers on device",
        weight=86,
        says="The model is not on the first device of DataParallel",
        sample=(
            "RuntimeError: module must have its parameters and buffers "
            "on device cuda:0 (device_ids[0]) but found one of them on "
            "device: cpu"
        ),
        other="parameters and buffers",
        stands=True,
    ),
    Signature(
        name="meta",
        literal="copy out of meta tensor",
        pattern=r"Cannot copy out of meta tensor",
        weight=80,
        says="A model without data is moved to a device",
        sample="NotImplementedError: Cannot copy out of meta tensor; no data!",
        other="meta tensor",
        stands=True,
    ),
    Signature(
        name="object-type-found",
        literal="expected object of",
        pattern=r"Expected object of type torch\.\S{1,40} but found type torch\.\S{1,40}",
        weight=84,
        says="A tensor of one type or device meets one of another",
        sample=(
            "RuntimeError: Expected object of type torch.DoubleTensor but found type "
            "torch.cuda.DoubleTensor for argument #1 'mat1'"
        ),
        other="expected an object",
        stands=True,
    ),
    Signature(
        name="half-on-cpu",
        literal="not implemented for 'half'",
        pattern=(
            r"\b(?!\w{0,60}(?:cuda|cusolver|cublas|cudnn|cufft|magma|gpu|hip|mps))\w{3,60}\W{1,3} ?"
            r"not implemented for 'Half'"
        ),
        weight=66,
        says="Half precision is used on the CPU: the model is not on a GPU",
        sample="RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'",
        other="RuntimeError: \"angle_cuda\" not implemented for 'Half'",
        unless=("fact:cuda_available=false", "not compiled with cuda", "+cpu"),
        stands=True,
    ),
    Signature(
        name="deserialize-n",
        literal="attempting to deserialize object on cuda device",
        pattern=(
            r"deserialize object on CUDA device \d{1,3} but torch\.cuda\.device_count\(\) "
            r"is \d"
        ),
        weight=88,
        says=(
            "A checkpoint names a GPU that this machine does not have: load it with map_location"
        ),
        sample=(
            "RuntimeError: Attempting to deserialize object on CUDA device "
            "1 but torch.cuda.device_count() is 1."
        ),
        other="deserialize",
        stands=True,
        cures=(
            Cure(
                text=(
                    "Load the checkpoint with map_location, for example "
                    "torch.load(path, map_location='cpu')."
                ),
                zh=("加载检查点时使用 map_location，例如 torch.load(path, map_location='cpu')。"),
            ),
        ),
    ),
)
