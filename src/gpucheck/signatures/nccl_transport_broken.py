"""Texts that point to nccl-transport-broken."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="nccl-transport-broken",
    zh="NCCL 的某种传输方式在这台机器上失败",
    signatures=(
        Signature(
            name="nvls",
            literal="nvls",
            pattern=(
                r"transport/nvls\.cc.{0,80}(?:NCCL WARN|failed|Cuda failure)|"
                r"Failed to bind NVLink SHARP|NVLS multicast.{0,40}(?:fail|"
                r"error)"
            ),
            weight=78,
            says="NCCL's NVLink SHARP transport fails",
            sample=(
                "transport/nvls.cc:244 NCCL WARN Failed to bind NVLink SHARP "
                "(NVLS) Multicast memory of size 2097152"
            ),
            other="NVLS comm 0x1",
        ),
        Signature(
            name="nvls-helps",
            literal="nccl_nvls_enable",
            pattern=(
                r"NCCL_NVLS_ENABLE\s{0,2}=\s{0,2}0.{0,80}(?:works?|fix|solv|"
                r"help|ok\b|fine)|(?:works?|fix\w{0,3}|solv\w{0,3}|only|fine|"
                r"helps).{0,60}NCCL_NVLS_ENABLE\s{0,2}=\s{0,2}0"
            ),
            weight=86,
            says="It works with NCCL_NVLS_ENABLE=0: the NVLS transport is broken here",
            sample="with NCCL_NVLS_ENABLE=0 it works",
            other="NCCL_NVLS_ENABLE=1",
        ),
        Signature(
            name="cumem-helps",
            literal="nccl_cumem",
            pattern=(
                r"NCCL_CUMEM\w{0,12}_ENABLE\s{0,2}=\s{0,2}0.{0,80}(?:works?|"
                r"fix|solv|help|ok\b|fine)|(?:works?|fix\w{0,3}|solv\w{0,3}|"
                r"only|fine|helps).{0,60}NCCL_CUMEM\w{0,12}_ENABLE\s{0,2}=\s{0,2}0"
            ),
            weight=86,
            says="It works with cuMem switched off: that path of NCCL is broken here",
            sample="with NCCL_CUMEM_ENABLE=0 it works",
            other="NCCL_CUMEM_ENABLE=1",
        ),
        Signature(
            name="cumem",
            literal="cumem",
            pattern=(
                r"(?:NCCL WARN|Cuda failure).{0,80}cuMem\w{1,40}|cuMem(?:ImportFromShareableHand"
                r"le|Create|Map|SetAccess)\w{0,20}.{0,60}(?:fail|error)|allocator\.cc.{0,60}NCCL"
                r" WARN"
            ),
            weight=78,
            says="NCCL's cuMem path fails",
            sample="NCCL WARN Cuda failure 999 'unknown error' cuMemCreate failed",
            other="cuMem enabled",
            beside=("nccl warn|cuda failure|cumemimport|cumemcreate|cumemmap|cumemsetaccess",),
        ),
        Signature(
            name="shm-helps",
            literal="nccl_shm_disable",
            pattern=(
                r"NCCL_SHM_DISABLE\s{0,2}=\s{0,2}1.{0,80}(?:works?|fix|solv|"
                r"help|ok\b|fine)|(?:works?|fix\w{0,3}|solv\w{0,3}|only|fine|"
                r"helps).{0,60}NCCL_SHM_DISABLE\s{0,2}=\s{0,2}1"
            ),
            weight=82,
            says="It works with NCCL_SHM_DISABLE=1: the shared-memory transport is broken here",
            sample="with NCCL_SHM_DISABLE=1 it works",
            other="NCCL_SHM_DISABLE=0",
        ),
        Signature(
            name="proto-helps",
            literal="nccl_proto",
            pattern=(
                r"NCCL_PROTO\s{0,2}=.{0,80}(?:works?|fix|solv|help|ok\b|fine|"
                r"correct)|(?:works?|fix\w{0,3}|only|fine|helps|correct).{0,60}NCCL_PROTO\s{0,2}"
                r"="
            ),
            weight=82,
            says="It works with another NCCL protocol: the default one is broken here",
            sample="NCCL_PROTO=Simple fixes it",
            other="NCCL_PROTO is unset",
        ),
        Signature(
            name="fd",
            literal="ncclproxyclientgetfdblocking",
            pattern=(
                r"ncclProxyClientGetFdBlocking.{0,60}(?:fail|error|->)|UDS.{0,40}(?:fail|"
                r"error)"
            ),
            weight=70,
            says="NCCL cannot pass handles between processes",
            sample="NCCL WARN ncclProxyClientGetFdBlocking call to rank 1 failed : 3 error",
            other="GetFd",
        ),
        Signature(
            name="unhandled-cuda",
            literal="unhandled cuda error",
            pattern=r"unhandled cuda error",
            weight=34,
            says="A CUDA call inside NCCL failed",
            sample=(
                "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled "
                "cuda error, NCCL version 2.14.3"
            ),
            other="cuda error",
        ),
        Signature(
            name="shm-warn",
            literal="transport/shm",
            pattern=r"transport/shm\S{0,12} NCCL WARN|shmutils\.cc\S{0,12} NCCL WARN",
            weight=62,
            says="NCCL's shared-memory transport fails",
            sample="transport/shm.cc:114 NCCL WARN Cuda failure 'invalid argument'",
            other="transport/shm.cc NCCL INFO",
            unless=("no space left",),
        ),
        Signature(
            name="p2p-warn",
            literal="transport/p2p",
            pattern=r"transport/p2p\S{0,12} NCCL WARN (?!.{0,60}out of memory)",
            weight=58,
            says="NCCL's peer-to-peer transport fails",
            sample="transport/p2p.cc:275 NCCL WARN Cuda failure 'invalid argument'",
            other="transport/p2p.cc NCCL INFO",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Switch transports off one by one to find the broken one; "
                "update driver, fabric manager and NCCL."
            ),
            zh="逐个关闭传输方式以找出故障项；更新驱动、fabric manager 和 NCCL。",
            commands=(
                "NCCL_NVLS_ENABLE=0 torchrun SCRIPT",
                "NCCL_CUMEM_ENABLE=0 torchrun SCRIPT",
            ),
        ),
    ),
)
