"""Texts that point to application-bug."""

from gpucheck.signatures.base import Cure, Signature, Signs

_LOOK_AT_TENSORS = (
    Cure(
        text=(
            "Look at the device, the shape and the type of the tensors "
            "in the line that the traceback names."
        ),
        zh="检查报错那一行中各张量的设备、形状和类型。",
    ),
)
_IMPORT_TORCH_FIRST = (
    Cure(
        text=("Import torch before the extension: its libraries are found through torch."),
        zh="在导入该扩展之前先 import torch：它的库要通过 torch 才能找到。",
    ),
)

SIGNS = Signs(
    slug="application-bug",
    zh="程序本身的错误，不是机器或安装的问题",
    signatures=(
        Signature(
            name="collectives",
            literal="mismatch between collectives",
            pattern=r"detected mismatch between collectives on ranks",
            weight=95,
            says="Ranks call different collectives",
            sample=(
                "RuntimeError: Detected mismatch between collectives on ranks. "
                "Rank 1 is running collective"
            ),
            other="a mismatch",
            stands=True,
            cures=(
                Cure(
                    text=(
                        "Let all ranks call the same collectives in the same "
                        "order and with the same shapes; TORCH_DISTRIBUTED_DEBUG=DETAIL "
                        "shows where they part."
                    ),
                    zh=(
                        "所有 rank 必须以相同的顺序和形状调用相同的集合通信；"
                        "TORCH_DISTRIBUTED_DEBUG=DETAIL 可显示分歧处。"
                    ),
                    commands=("TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun SCRIPT",),
                ),
            ),
        ),
        Signature(
            name="assertion",
            literal="assertion `",
            pattern=r"Assertion `.{1,160}` failed",
            weight=92,
            says=(
                "A kernel's assertion failed: an index or a value of the program is out of range"
            ),
            sample=(
                "IndexKernel.cu:92: operator(): block: [0,0,0], thread: [1,0,0] "
                'Assertion `index >= -sizes[i] && index < sizes[i] && "index '
                'out of bounds"` failed.'
            ),
            other="Assertion: ok",
            unless=("num_gpus",),
            stands=True,
        ),
        Signature(
            name="assert",
            literal="device-side assert",
            pattern=r"device-side assert triggered",
            weight=84,
            says=(
                "A kernel's assertion failed: an index or a value of the program is out of range"
            ),
            sample="RuntimeError: CUDA error: device-side assert triggered",
            other="an assert",
            stands=True,
        ),
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
        ),
        Signature(
            name="fork",
            literal="re-initialize cuda in forked subprocess",
            pattern=r"cannot re-initialize CUDA in forked subprocess",
            weight=90,
            says="The program uses CUDA before it forks: it must start its workers with spawn",
            sample=(
                "RuntimeError: Cannot re-initialize CUDA in forked subprocess. "
                "To use CUDA with multiprocessing, you must use the 'spawn' "
                "start method"
            ),
            other="forked subprocess",
            stands=True,
            cures=(
                Cure(
                    text=(
                        "Start the workers with spawn: torch.multiprocessing.set_start_method('"
                        "spawn'), or do not use CUDA before the fork."
                    ),
                    zh=(
                        "用 spawn 启动子进程：torch.multiprocessing.set_start_method('spawn')，"
                        "或在 fork 之前不要使用 CUDA。"
                    ),
                ),
            ),
        ),
        Signature(
            name="bootstrapping",
            literal="finished its bootstrapping phase",
            pattern=(
                r"before the\s{0,20}current process has finished its bootstrapping "
                r"phase|finished its bootstrapping phase"
            ),
            weight=88,
            says='The program starts workers without `if __name__ == "__main__"`',
            sample="current process has finished its bootstrapping phase.",
            other="bootstrapping",
            stands=True,
            cures=(
                Cure(
                    text="Put the code that starts the workers under if __name__ == '__main__'.",
                    zh="把启动子进程的代码放到 if __name__ == '__main__' 之下。",
                ),
            ),
        ),
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
                "RuntimeError: element 0 of tensors does not require grad "
                "and does not have a grad_fn"
            ),
            other="does not require grad",
            stands=True,
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
                "RuntimeError: mat1 and mat2 to have the same dtype, but got: "
                "float != c10::BFloat16"
            ),
            other="dtype",
            stands=True,
            cures=_LOOK_AT_TENSORS,
        ),
        Signature(
            name="default-pg",
            literal="process group has not been initialized",
            pattern=r"default process group has not been initialized",
            weight=88,
            says="The program uses torch.distributed before init_process_group",
            sample=(
                "RuntimeError: Default process group has not been initialized, "
                "please make sure to call init_process_group."
            ),
            other="process group",
            stands=True,
            cures=(
                Cure(
                    text=(
                        "Call torch.distributed.init_process_group before it "
                        "is used, and start with torchrun."
                    ),
                    zh="使用前先调用 torch.distributed.init_process_group，并用 torchrun 启动。",
                    commands=("torchrun --nproc-per-node=gpu SCRIPT",),
                ),
            ),
        ),
        Signature(
            name="local-rank",
            literal="unrecognized arguments: --local",
            pattern=r"unrecognized arguments: --local[-_]rank",
            weight=88,
            says="The script does not take --local-rank, which this launcher passes",
            sample="error: unrecognized arguments: --local-rank=0",
            other="unrecognized arguments: --foo",
            stands=True,
            cures=(
                Cure(
                    text=(
                        "Read LOCAL_RANK from the environment in place of --local-rank, "
                        "and start with torchrun."
                    ),
                    zh=(
                        "从环境变量 LOCAL_RANK 读取，而不是 --local-rank 参数，并用 torchrun 启动。"
                    ),
                ),
            ),
        ),
        Signature(
            name="more-ranks",
            literal="invalid device ordinal",
            pattern=r"invalid device ordinal",
            weight=84,
            says="More processes than GPUs, or a device number that does not exist",
            sample="RuntimeError: CUDA error: invalid device ordinal",
            other="ordinal",
            beside=("local_rank|nproc_per_node|nproc-per-node|torchrun|set_device|rank",),
            cures=(
                Cure(
                    text=(
                        "Start no more processes on a node than it has visible "
                        "GPUs, and give each its LOCAL_RANK."
                    ),
                    zh="每个节点的进程数不要超过可见 GPU 数，并让每个进程使用自己的 LOCAL_RANK。",
                    commands=("torchrun --nproc-per-node=gpu SCRIPT",),
                ),
            ),
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
                "A checkpoint names a GPU that this machine does not have: "
                "load it with map_location"
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
                    zh=(
                        "加载检查点时使用 map_location，例如 torch.load(path, map_location='cpu')。"
                    ),
                ),
            ),
        ),
        Signature(
            name="contradict",
            literal="illegal memory access",
            pattern=r"illegal memory access was encountered",
            weight=60,
            says=(
                "A kernel reads or writes outside its memory: most often a "
                "fault of the program or of an extension"
            ),
            sample="RuntimeError: CUDA error: an illegal memory access was encountered",
            other="memory access",
            unless=("fact:cuda_available=true",),
        ),
        Signature(
            name="misaligned",
            literal="misaligned address",
            pattern=r"CUDA error: misaligned address",
            weight=58,
            says="A kernel uses a misaligned address: a fault of the program or of an extension",
            sample="RuntimeError: CUDA error: misaligned address",
            other="address",
            unless=("fact:cuda_available=true",),
        ),
        Signature(
            name="launch-failure",
            literal="unspecified launch failure",
            pattern=r"unspecified launch failure",
            weight=46,
            says="A kernel failed",
            sample="RuntimeError: CUDA error: unspecified launch failure",
            other="launch",
            unless=("fact:cuda_available=true",),
        ),
        Signature(
            name="config-arg",
            literal="invalid configuration argument",
            pattern=r"CUDA error: invalid configuration argument",
            weight=56,
            says="A kernel is started with an impossible size: an empty or too large tensor",
            sample="RuntimeError: CUDA error: invalid configuration argument",
            other="configuration argument",
            unless=("fact:cuda_available=true",),
        ),
        Signature(
            name="xid-13",
            literal="xid",
            pattern=r"Xid \([^)]{1,40}\): (?P<xid>13|31|43)\b",
            weight=60,
            says="Xid {xid}: a kernel of the program faulted",
            sample="NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=python",
            other="Xid (PCI:0000:3b:00): 79",
            unless=("fact:cuda_available=true",),
        ),
        Signature(
            name="keyword",
            literal="unexpected keyword argument",
            pattern=r"TypeError: \S{1,80}\(\) got an unexpected keyword argument",
            weight=70,
            says="The program calls a function with an argument that it does not take",
            sample="TypeError: foo() got an unexpected keyword argument 'bar'",
            other="keyword argument",
            unless=("fact:cuda_available=true",),
        ),
        Signature(
            name="unbalanced-data",
            literal="uneven",
            pattern=(
                r"(?:join|uneven inputs|different number of (?:batches|samples|"
                r"steps)).{0,80}rank"
            ),
            weight=64,
            says="Ranks have different numbers of batches",
            sample="uneven inputs: a different number of batches on each rank",
            other="uneven",
            unless=("fact:cuda_available=true",),
        ),
        Signature(
            name="backend-cpu",
            literal="no backend type associated with device type",
            pattern=r"no backend type associated with device type",
            weight=84,
            says="A collective is called on tensors of a device that the backend does not serve",
            sample="RuntimeError: No backend type associated with device type cpu",
            other="backend type",
            stands=True,
        ),
        Signature(
            name="dense-cuda",
            literal="tensors must be cuda and dense",
            pattern=r"tensors must be CUDA and dense",
            weight=84,
            says="A NCCL collective is called on CPU tensors",
            sample="RuntimeError: Tensors must be CUDA and dense",
            other="tensors",
            stands=True,
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
            name="import-order",
            literal="cannot open shared object",
            pattern=r"lib(?:c10|torch|torch_cpu|torch_python)\.so: cannot open shared object",
            weight=90,
            says="The extension was imported before torch, whose libraries it needs",
            sample=(
                "ImportError: libc10.so: cannot open shared object file: No such file or directory"
            ),
            other="libfoo.so: cannot open shared object",
            beside=("is_available()\ntrue",),
            cures=_IMPORT_TORCH_FIRST,
        ),
        Signature(
            name="rank-shapes",
            literal="rank == 0",
            pattern=r"if (?:rank|local_rank|args\.rank|global_rank) == 0",
            weight=60,
            says="One rank does something else than the others",
            sample="if rank == 0:",
            other="rank = 0",
            beside=(
                "all_reduce|all_gather|broadcast|barrier",
                (
                    " hang|hangs|hanging|hung |hung,|stuck|freez|deadlock|"
                    "卡住|卡死|100% util|at 100%|util 99%|util 100%|no progress|"
                    "never end|never print|never finish|blocks forever|does "
                    "not return|never return"
                ),
            ),
        ),
        Signature(
            name="import-torch-first",
            literal="undefined symbol: thp",
            pattern=r"undefined symbol: THP\w{1,60}",
            weight=89,
            says="The extension was imported before torch, whose libraries it needs",
            sample=(
                "ImportError: lltm_cpp.cpython-36m-x86_64-linux-gnu.so: undefined "
                "symbol: THPVariableClass"
            ),
            other="undefined symbol: foo",
            cures=_IMPORT_TORCH_FIRST,
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
            name="state-dict",
            literal="in loading state_dict for",
            pattern=r"Error\(s\) in loading state_dict for",
            weight=82,
            says="A checkpoint does not fit the model",
            sample="RuntimeError: Error(s) in loading state_dict for ResNet:",
            other="state_dict for",
            stands=True,
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
            name="scalar-grad",
            literal="implicitly created only for scalar",
            pattern=r"grad can be implicitly created only for scalar outputs",
            weight=84,
            says="backward is called on something that is no single number",
            sample="RuntimeError: grad can be implicitly created only for scalar outputs",
            other="scalar",
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
            name="unpickle-lambda",
            literal="can't pickle",
            pattern=r"(?:can't|cannot) pickle (?:local object|\S{0,30}lambda|<function)",
            weight=70,
            says="The program hands its workers something that cannot be pickled",
            sample="AttributeError: Can't pickle local object 'main.<locals>.<lambda>'",
            other="pickle",
            unless=("fact:cuda_available=true",),
            stands=True,
        ),
        Signature(
            name="resources-launch",
            literal="too many resources requested for launch",
            pattern=r"too many resources requested for launch",
            weight=62,
            says="A kernel is started with more threads than its registers allow",
            sample="RuntimeError: CUDA error: too many resources requested for launch",
            other="resources",
            unless=("fact:cuda_available=true",),
        ),
        Signature(
            name="mismatched-collective",
            literal="mismatched collective detected",
            pattern=r"Mismatched collective detected",
            weight=92,
            says="Ranks call different collectives",
            sample=(
                "NCCL WARN Mismatched collective detected, please check your collective calls at "
                "and "
                "around rank 7."
            ),
            other="a mismatch",
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
            name="builtin-attribute",
            literal="object has no attribute",
            pattern=(
                r"Error: '(?:str|list|tuple|dict|set|int|float|bool|bytes|function|Namespace|"
                r"numpy\.(?:ndarray|float32|float64|int64)|builtin_function_or_method|DataLoader|"
                r"DataParallel|DistributedDataParallel|Image|generator)' object has no attribute"
            ),
            weight=58,
            says="The program uses an object of another kind than it expects",
            sample="AttributeError: 'list' object has no attribute 'cuda'",
            other="AttributeError: '_OpNamespace' '_C' object has no attribute 'silu'",
            beside=("torch|cuda|gpu",),
            stands=True,
        ),
        Signature(
            name="older-torch",
            literal="module 'torch' has no attribute",
            pattern=(
                r"module 'torch' has no attribute '(?:device|tensor|float(?:16|32|64|8_\w{1,12})|"
                r"bool|u?int(?:8|16|32|64)|bfloat16|compile|inference_mode|autocast|amp|fx|func|"
                r"set_float32_matmul_precision|get_default_device|set_default_device|xpu|mps|"
                r"concat|permute|nan_to_num|Generator|channels_last|fft|special|linalg|vmap|"
                r"set_grad_enabled|no_grad|stft|searchsorted|frombuffer|library)'"
            ),
            weight=62,
            says="The program wants a newer torch than the one installed",
            sample="AttributeError: module 'torch' has no attribute 'inference_mode'",
            other="module 'torch' has no attribute 'nn'",
            unless=("(unknown location)", "partially initialized"),
            stands=True,
            cures=(
                Cure(
                    text=(
                        "Install a torch as new as the program asks for (its requirements say "
                        "which)."
                    ),
                    zh="按该程序的要求安装更新的 torch 版本。",
                    commands=(
                        'python -c "import torch; print(torch.__version__, torch.__file__)"',
                    ),
                ),
            ),
        ),
        Signature(
            name="half-on-cpu",
            literal="not implemented for 'half'",
            pattern=r"\b\w{3,60}\W{1,3} ?not implemented for 'Half'",
            weight=66,
            says="Half precision is used on the CPU: the model is not on a GPU",
            sample="RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'",
            other="it is not implemented for halves",
            unless=("fact:cuda_available=false", "not compiled with cuda", "+cpu"),
            stands=True,
        ),
        Signature(
            name="capturing",
            literal="stream is capturing",
            pattern=(
                r"operation not permitted when stream is capturing|cudaErrorStreamCapture\w{3,40}"
            ),
            weight=72,
            says="While a CUDA graph is recorded the program does what cannot be recorded",
            sample="RuntimeError: CUDA error: operation not permitted when stream is capturing",
            other="the stream is capturing video",
            stands=True,
        ),
    ),
    cures=(
        Cure(
            text=(
                "Run with CUDA_LAUNCH_BLOCKING=1, or on the CPU: the fault "
                "then shows at its own line."
            ),
            zh="用 CUDA_LAUNCH_BLOCKING=1 或在 CPU 上运行，错误会在出错的那一行显示。",
            commands=("CUDA_LAUNCH_BLOCKING=1 python SCRIPT",),
        ),
    ),
)
