"""Names of GPUs in sentences: from the tables of products."""

from each import each
from readers_support import TABLES, Read

from gpucheck.facts.driver import Nvml
from gpucheck.facts.system import Pci
from gpucheck.tables.gpus import GpuProducts
from gpucheck.ticket.readers.mentions import gpu_names

DATA_CENTER = [
    row.product.removeprefix("NVIDIA ").partition(" (")[0]
    for row in TABLES.get(GpuProducts).rows
    if row.segment == "data center" and not row.product.startswith(("Tesla C", "NVIDIA RTX"))
]


def products(text: str) -> list[str | None]:
    return [gpu.product for gpu in Read(text, "free text").get(Pci).gpus or []]


@each("model", DATA_CENTER)
def test_every_data_center_gpu_of_the_tables_is_read(model: str) -> None:
    assert products(f"vLLM hangs on our NVIDIA {model}, why?") == [model]


@each("model", ["H20", "B300", "GB300", "GB200", "GH200", "A10G", "A6000"])
def test_a_model_alone(model: str) -> None:
    assert products(f"It does not work on {model}.") == [model]
    assert products(f"we have two {model.lower()} GPUs") == [model.lower()]


@each(
    ("text", "product"),
    [
        ("my rtx3090ti is not found", "RTX 3090 Ti"),
        ("a 4090 in a desktop", "RTX 4090"),
        ("Tesla K80, driver 470", "Tesla K80"),
        ("T4 GPU x4", "T4"),
        ("8 * H20 96G", "H20"),
        ("2x A10 here", "A10"),
        ("NVIDIA RTX A6000 beside it", "RTX A6000"),
    ],
)
def test_a_name_as_it_is_sold(text: str, product: str) -> None:
    assert products(text) == [product]


@each(
    "text",
    [
        "p40 of the latency is 12 ms",
        "see train.py#L40-L60",
        "fatal error C2070: illegal sizeof operand",
        "the L2 cache of a GPU",
        "in P4 state",
        "it was the year 2060",
        "/models/h100/weights.bin",
        "use W4A16 on a GPU",
        "the request-a100.example.org host",
    ],
)
def test_what_only_looks_like_a_model(text: str) -> None:
    assert products(text) == []


def test_a_mention_is_no_inventory() -> None:
    """The GPUs that a program listed stay the only ones."""
    listed = "GPU 0: NVIDIA H20 (UUID: GPU-8ae6ba7e-0e45-9b13-6e1f-2f0a3bbd1234)\n"
    read = Read(f"{listed}The same job runs on B300 and on GB300.\n")
    assert [gpu.device_name for gpu in read.get(Nvml).gpus or []] == ["NVIDIA H20"]
    assert read.get(Pci).gpus is None


@each("product", ["B200", "H20", "GeForce RTX 3090", "GRID K520", "L4"])
@each("ids", ["", " [10de:2204]"])
def test_lspci(product: str, ids: str) -> None:
    line = f"01:00.0 3D controller: NVIDIA Corporation GA102 [{product}]{ids} (rev a1)"
    (gpu,) = Read(line, "system commands").get(Pci).gpus or []
    assert gpu.product == product


def test_lspci_without_a_name() -> None:
    line = "01:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2901] (rev a1)"
    (gpu,) = Read(line, "system commands").get(Pci).gpus or []
    assert gpu.product is None


@each("name", ["B300", "GB200", "H20-3e"])
def test_a_session_names_its_gpu(name: str) -> None:
    (gpu,) = Read(f">>> torch.cuda.get_device_name(0)\n'{name}'\n").get(Nvml).gpus or []
    assert gpu.device_name == name


def test_no_mark_is_a_word_of_another_case() -> None:
    marks = gpu_names(TABLES).marks("0000 4090 2080")
    assert list(marks) == [mark.lower() for mark in marks]
    assert "4090" in marks
    assert "2060" not in marks
