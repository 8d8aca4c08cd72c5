"""``recommend --with`` and ``compat packages=``: packages beside torch that fit together."""

import json
from typing import Any

from click.testing import CliRunner, Result
from each import each
from rules_support import TABLES

from gpucheck import cli
from gpucheck.advice.recommender import Card, Recommender, Situation
from gpucheck.describe.judge import judge_described
from gpucheck.describe.keys import read_words
from gpucheck.describe.recommend_options import OTHER_COMPANIONS
from gpucheck.tables.companions import Extensions

RECOMMENDER = Recommender(TABLES)
INDEX = "https://download.pytorch.org/whl/"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.gpucheck, [*arguments])


def commands(*options: str) -> list[str]:
    """Return the commands for a Linux host with Python 3.12, without ``python -m pip install``."""
    where = ("--os", "linux", "--arch", "x86_64", "--python-version", "3.12", "--format", "json")
    found: dict[str, Any] = json.loads(run("recommend", *where, *options).stdout)
    return [line.removeprefix("python -m pip install ") for line in found["commands"]]


@each(
    ("gpu", "driver", "wanted", "expected"),
    [
        ("RTX 4090", "580", "vllm", ["torch==2.14.0 vllm==0.33.0"]),
        ("RTX 4090", "550", "vllm", ["torch==2.10.0 vllm==0.19.1"]),
        ("RTX 4090", "580", "sglang", ["torch==2.14.1 sglang==0.5.23"]),
        ("RTX 4090", "580", "SGLang,torchcodec",
         ["torch==2.14.1 sglang==0.5.23 torchcodec==0.17.0"]),
        ("RTX 4090", "580", "torchcodec,torchvision",
         ["torch==2.15.0 torchvision==0.29.2 torchcodec==0.16.0"]),
        ("RTX 4090", "550", "torchcodec",
         [("torch==2.14.1+cu126 torchcodec==0.16.0+cu126 --extra-index-url " + INDEX + "cu126")]),
        ("none", "580", "torchcodec",
         [("torch==2.15.0+cpu torchcodec==0.13.0 --extra-index-url " + INDEX + "cpu")]),
        ("RTX 4090", "550", "flash_attn",
         ["torch==2.8.0", "--no-build-isolation flash-attn==2.8.3.post1"]),
        ("RTX 4090", "580", "torch-scatter,torch-sparse",
         [("torch==2.12.1 torch-scatter torch-sparse "
          "--find-links https://data.pyg.org/whl/torch-2.12.0+cu130.html")]),
        ("RTX 4090", "580", "xformers",
         ["torch==2.14.1+cu126 xformers==0.0.35 --extra-index-url " + INDEX + "cu126"]),
        ("RTX 4090", "580", "triton", ["torch==2.15.0 triton==3.9.0"]),
        ("RTX 4090", "580", "transformer-engine",
         ["torch==2.15.0",
          "--no-build-isolation 'transformer-engine[pytorch,core_cu13]==2.20.2'"]),
    ],
)  # fmt: skip
def test_the_newest_set_that_fits(gpu: str, driver: str, wanted: str, expected: list[str]) -> None:
    assert commands("--gpu", gpu, "--driver", driver, "--with", wanted) == expected


@each(
    ("options", "why"),
    [
        (("--gpu", "T4", "--driver", "580", "--with", "flash-attn"),
         "flash-attn needs compute capability 8.0 or newer, which T4 (sm_75) lacks"),
        (("--gpu", "T4", "--driver", "580", "--tool", "conda", "--with", "flash-attn"),
         "flash-attn needs compute capability 8.0 or newer, which T4 (sm_75) lacks"),
        (("--gpu", "T4", "--driver", "580", "--with", "transformer-engine"), "transformer-engine"),
        (("--gpu", "RTX 5090", "--driver", "580", "--torch", "2.15", "--with", "vllm"),
         "no release of vllm for torch 2.15.0"),
        (("--gpu", "L4", "--driver", "580", "--torch", "2.8", "--glibc", "2.28", "--with",
          "flash-attn"),
         ("flash-attn needs glibc 2.32 or newer for torch 2.8.0 (cu128), and this system has 2.28. "
         "It would fit with a system or container with glibc 2.32 or newer.")),
        (("--gpu", "L4", "--driver", "580", "--torch", "2.5", "--python-version", "3.8", "--with",
          "vllm"),
         ("torch 2.5.1 has no wheel for Python 3.8 and no release of vllm for torch 2.5.1 (cu124) "
         "is made for Python 3.8. It would fit with another Python.")),
        (("--gpu", "GH200", "--arch", "aarch64", "--driver", "580", "--torch", "2.9.1",
          "--python-version", "3.13", "--with", "vllm"),  # xgrammar, which it pins, has no wheel
         "no release of vllm for torch 2.9.1 (cu128) is made for Python 3.13"),
    ],
)  # fmt: skip
def test_why_none_exists(options: tuple[str, ...], why: str) -> None:
    where = ("--os", "linux", "--arch", "x86_64", "--python-version", "3.12")
    done = run("recommend", *where, *options)
    assert done.exit_code == 1
    assert why in " ".join(done.stdout.split())


def test_a_package_that_does_without_its_own_kernels_says_so() -> None:
    box = ("--driver", "580", "--os", "linux", "--python-version", "3.12", "--with", "xformers")
    older = " ".join(run("recommend", "--gpu", "GTX 1080", *box).stdout.split())
    assert "kernels of its own for compute capability 7.5 or newer: on GTX 1080" in older
    assert "kernels of its own" not in run("recommend", "--gpu", "T4", *box).stdout


def test_windows_has_no_vllm_and_it_is_said_what_would_fit() -> None:
    done = run("recommend", "--gpu", "RTX 4090", "--driver", "581", "--os", "windows", "--with",
               "vllm")  # fmt: skip
    assert done.exit_code == 1
    assert "would fit with other packages" in " ".join(done.stdout.split())


def test_a_board_before_jetpack_7_gets_no_wheel_for_servers() -> None:
    """PyPI's bitsandbytes for ARM was installed there and found no symbol (its issue 1930)."""
    board = ("--gpu", "Jetson Orin Nano", "--arch", "aarch64", "--python-version", "3.10",
             "--jetpack", "6.2")  # fmt: skip
    for package in ("bitsandbytes", "vllm", "transformer-engine", "torchcodec"):
        done = run("recommend", *board, "--with", package)
        assert done.exit_code == 1, package
        words = " ".join(done.stdout.split())
        assert f"PyPI's wheels of {package} for ARM are made for servers" in words
        assert (
            f"{package} of Jetson AI Lab's index (https://pypi.jetson-ai-lab.io/jp6/cu126" in words
        )
    (line,) = commands(*board, "--with", "torchvision")
    assert line.endswith(
        "torch==2.8.0 torchvision==0.23.0 --index-url https://pypi.jetson-ai-lab.io/jp6/cu126"
    )
    later = ("--arch", "aarch64", "--jetpack", "7.2", "--with", "bitsandbytes")
    (line,) = commands("--gpu", "Jetson Orin Nano", *later)
    assert "bitsandbytes==0.50.2" in line


def test_a_package_without_wheels_for_a_platform_says_so() -> None:
    machine = (
        "--gpu",
        "RTX 4090",
        "--driver",
        "581",
        "--os",
        "windows",
        "--python-version",
        "3.12",
    )
    words = " ".join(run("recommend", *machine, "--with", "flash-attn").stdout.split())
    assert "the tables know no wheel of flash-attn for Windows" in words
    assert "flash-attn compiled from source" in words


def test_a_package_makes_an_unseen_python_no_refusal() -> None:
    spark = ("--gpu", "RTX Spark", "--driver", "616.21", "--os", "windows", "--arch", "aarch64")
    for package in ("bitsandbytes", "xformers"):
        done = run("recommend", *spark, "--python-version", "3.12", "--with", package)
        words = " ".join(done.stdout.split())
        assert "Which build fits is unknown." in words, package
        assert ("know no wheel of xformers" in words) == (package == "xformers")
    (line,) = commands(*spark, "--python-version", "3.13", "--with", "bitsandbytes")
    assert "torch==2.14.0+cu134 bitsandbytes==0.50.2" in line


def test_uv_may_take_torch_from_another_index_than_the_rest() -> None:
    (line,) = commands("--gpu", "RTX 4090", "--driver", "580", "--with", "xformers", "--tool", "uv")
    assert line == (
        "uv pip install torch==2.14.1+cu126 xformers==0.0.35 --index-strategy unsafe-best-match "
        f"--index {INDEX}cu126"
    )


def test_two_that_exclude_each_other_are_no_set() -> None:
    """Pip says of these that it is impossible: they pin two releases of outlines_core."""
    done = run("recommend", "--gpu", "H100", "--driver", "580", "--os", "linux", "--arch", "x86_64",
               "--python-version", "3.12", "--with", "vllm,sglang")  # fmt: skip
    assert done.exit_code == 1
    words = " ".join(done.stdout.split())
    assert "the releases of vllm and sglang for torch 2.13.0 (cu130) exclude each other" in words


@each("wanted", [("vllm", "bitsandbytes"), ("vllm", "xformers"), ("sglang", "torchcodec")])
def test_no_package_of_a_set_excludes_another(wanted: tuple[str, ...]) -> None:
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415

    found = RECOMMENDER.recommend(
        Situation(
            platform="linux_x86_64", python="3.12", cards=(Card("H100", "9.0"),), driver="580.95",
            companions=wanted,
        )
    )  # fmt: skip
    have = {chosen.package: chosen.version for chosen in found.companions}
    assert set(have) == set(wanted)
    pins: dict[str, set[str]] = {}
    for chosen in found.companions:
        for project, need in chosen.requires.items():
            if project in have:
                assert SpecifierSet(need).contains(have[project]), (chosen, project)
            if need.startswith("=="):
                pins.setdefault(project, set()).add(need)
    assert all(len(versions) == 1 for versions in pins.values()), pins


def test_the_help_has_every_name() -> None:
    words = " ".join(run("recommend", "--help").stdout.split())
    assert all(name in words.replace("- ", "-") for name in OTHER_COMPANIONS)


def test_every_name_is_one_of_the_tables() -> None:
    table = TABLES.get(Extensions)
    of_wheels = {"pyg-lib", "torch-cluster", "torch-scatter", "torch-sparse", "torch-spline-conv"}
    for name in set(OTHER_COMPANIONS) - {"triton"}:
        assert table.of_package(name) or name in of_wheels, name
    for name in of_wheels:
        assert table.wheels(name, "2.10.0", "cu128"), name


@each(
    ("words", "slug"),
    [
        (("torch=2.15.0", "packages=vllm==0.33.0"), "package-pin-conflict"),
        (("torch=2.15.0", "packages=torchcodec==0.9.1"), "package-pin-conflict"),
        (("torch=2.8.0", "packages=vllm==0.11.0,xformers==0.0.32.post2"), "package-pin-conflict"),
        (("torch=2.14.0", "packages=vllm==0.33.0,torchcodec==0.16.0"), ""),
        (("torch=2.14.0", "packages=unknown==1.0"), ""),
        (("torch=2.14.1+cu126", "packages=torchcodec==0.17.0"), "extension-abi-mismatch"),
        (("torch=2.13.0+cu126", "packages=torchcodec==0.16.0"), "extension-abi-mismatch"),
        (("torch=2.13.0+cu126", "packages=torchcodec==0.16.0+cu126"), ""),
        (("torch=2.13.0+cu126", "packages=torchcodec==0.13.0"), ""),
        (
            ("torch=2.11.0+cu126", "arch=aarch64", "packages=torchcodec==0.13.0"),
            "extension-abi-mismatch",
        ),
        (("torch=2.13.0+cu126", "packages=vllm==0.30.0"), "extension-abi-mismatch"),
        (("torch=2.13.0", "packages=vllm==0.30.0"), ""),
    ],
)
def test_compat_judges_packages(words: tuple[str, ...], slug: str) -> None:
    report = judge_described(read_words(["os=linux", *words]), TABLES).report
    assert report.root_causes == ((slug,) if slug else ())


def test_a_wheel_for_another_cuda_is_replaced_by_that_of_pytorchs_index() -> None:
    report = judge_described(
        read_words(["os=linux", "torch=2.14.1+cu126", "packages=torchcodec==0.17.0"]), TABLES
    ).report
    (hit,) = (hit for hit in report.findings if hit.slug == "extension-abi-mismatch")
    assert "0.17.0 of PyPI was built for CUDA 13" in hit.headline
    (command,) = hit.fixes[0].commands
    assert command == (
        "python -m pip install --force-reinstall --no-deps torchcodec==0.16.0+cu126 "
        f"--index-url {INDEX}cu126"
    )


@each(
    "words",
    [
        ("os=windows", "torch=2.14.1+cu126", "packages=torchcodec==0.17.0"),
        ("os=linux", "torch=2.14.1", "cuda=12.6", "torch_source=conda-forge",
         "packages=torchcodec==0.17.0"),
    ],
)  # fmt: skip
def test_a_wheel_without_cuda_or_a_package_of_conda_is_not_blamed(words: tuple[str, ...]) -> None:
    assert judge_described(read_words([*words]), TABLES).report.verdict == "healthy"


def test_two_wheels_of_one_version_leave_it_open() -> None:
    words = ["os=linux", "torch=2.9.0+cu126", "packages=xformers==0.0.33"]
    assert judge_described(read_words(words), TABLES).report.verdict == "unknown"
    fits = ["os=linux", "torch=2.9.0+cu130", "packages=xformers==0.0.33"]
    assert judge_described(read_words(fits), TABLES).report.verdict == "healthy"


@each("name", ["torchtext", "vlm"])
def test_an_unknown_package_is_refused(name: str) -> None:
    done = run("recommend", "--gpu", "T4", "--with", name)
    assert done.exit_code == 2
    assert "--with knows torchvision" in done.stderr


def test_a_python_for_which_a_pinned_package_has_no_wheel() -> None:
    """SGLang requires outlines_core 0.1.26, which has no wheel for Python 3.13."""
    where = ("--os", "linux", "--arch", "x86_64", "--gpu", "RTX 4090", "--driver", "580")
    fits = run("recommend", *where, "--with", "sglang", "--python-version", "3.12")
    assert "sglang==0.5.23" in fits.stdout
    refused = run("recommend", *where, "--with", "sglang", "--python-version", "3.13")
    assert "sglang==" not in refused.stdout
