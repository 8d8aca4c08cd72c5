"""Texts that point to kernel-module-not-loaded."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="kernel-module-not-loaded",
    zh="NVIDIA 内核模块没有加载或没有编译成功",
    signatures=(
        Signature(
            name="smi",
            literal="couldn't communicate with the nvidia driver",
            pattern=r"couldn't communicate with the NVIDIA driver",
            weight=84,
            says="nvidia-smi cannot reach the driver: its kernel module is not loaded",
            sample=(
                "NVIDIA-SMI has failed because it couldn't communicate with "
                "the NVIDIA driver. Make sure that the latest NVIDIA driver "
                "is installed and running."
            ),
            other="NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
        ),
        Signature(
            name="nvml-not-loaded",
            literal="driver not loaded",
            pattern=r"(?:nvml|nvidia).{0,60}driver not loaded",
            weight=86,
            says="NVML says that the kernel module is not loaded",
            sample=(
                "nvidia-container-cli: initialization error: nvml error: driver "
                "not loaded: unknown."
            ),
            other="the printer driver not loaded yet",
        ),
        Signature(
            name="modprobe-not-found",
            literal="module nvidia",
            pattern=r"modprobe: FATAL: Module nvidia[\w-]{0,40} (?:is )?not found",
            weight=92,
            says="There is no nvidia module for the running kernel",
            sample=(
                "modprobe: FATAL: Module nvidia not found in directory /lib/modules/5.15.0-91-g"
                "eneric"
            ),
            other="modprobe: FATAL: Module zfs not found",
        ),
        Signature(
            name="modprobe-insert",
            literal="could not insert",
            pattern=(
                r"""could not insert (?:module )?['\"]?nvidia[\w-]{0,20}(?:\.ko)?['\"]?:? """
                r"(?P<why>.{0,60})"
            ),
            weight=91,
            says="The nvidia module could not be loaded: {why}",
            sample="modprobe: ERROR: could not insert 'nvidia': No such device",
            other="modprobe: ERROR: could not insert 'zfs': Required key not available",
            unless=("unknown symbol",),
        ),
        Signature(
            name="unsigned",
            literal="module with unavailable key is rejected",
            pattern=r"loading of (?:unsigned module|module with unavailable key) is rejected",
            weight=92,
            says="Secure Boot rejects the module: its key is not enrolled",
            sample="Loading of module with unavailable key is rejected",
            other="loading of shared module is fine",
        ),
        Signature(
            name="dkms",
            literal="bad return status for module build",
            pattern=r"bad return status for module build on kernel: (?P<kernel>\S{1,80})",
            weight=90,
            says="DKMS could not build the nvidia module for kernel {kernel}",
            sample=(
                "Error! Bad return status for module build on kernel: 6.5.0-14-generic (x86_64)"
            ),
            other="module build finished on kernel 6.5",
            beside=("nvidia",),
        ),
        Signature(
            name="gpl-only",
            literal="gpl-incompatible module nvidia",
            pattern=r"GPL-incompatible module nvidia[\w-]{0,20}\.ko uses GPL-only symbol",
            weight=93,
            says="This driver does not build on this kernel (GPL-only symbol)",
            sample=(
                "ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only "
                "symbol '__rcu_read_lock'"
            ),
            other="GPL-incompatible module zfs.ko uses GPL-only symbol",
        ),
        Signature(
            name="installer-build",
            literal="nvidia kernel module",
            pattern=(
                r"(?:unable|failed|error).{0,60}(?:build|load|install).{0,30}NVIDIA "
                r"kernel module"
            ),
            weight=90,
            says="The installer could not build or load the kernel module",
            sample=(
                'ERROR: An error occurred while performing the step: "Building '
                'kernel modules". Unable to build the NVIDIA kernel module'
            ),
            other="the NVIDIA kernel module is loaded",
        ),
        Signature(
            name="installer-load",
            literal="unable to load the kernel module",
            pattern=r"unable to load the kernel module '?nvidia",
            weight=92,
            says="The installer could not load the kernel module",
            sample="ERROR: Unable to load the kernel module 'nvidia.ko'.",
            other="Unable to load the kernel module 'vboxdrv'",
        ),
        Signature(
            name="kernel-source",
            literal="unable to find the kernel source tree",
            pattern=r"unable to find the kernel source tree",
            weight=90,
            says="The driver's installer finds no kernel headers",
            sample=(
                "ERROR: Unable to find the kernel source tree for the currently running kernel."
            ),
            other="unable to find the source tree",
        ),
        Signature(
            name="nouveau-in-use",
            literal="nouveau kernel driver is currently in use",
            pattern=r"nouveau kernel driver is currently in use",
            weight=90,
            says="nouveau holds the GPU",
            sample="ERROR: The Nouveau kernel driver is currently in use by your system.",
            other="the nvidia kernel driver is currently in use",
        ),
        Signature(
            name="nvrm-probe",
            literal="probe routine was not called for",
            pattern=r"NVRM: The NVIDIA probe routine was not called for",
            weight=91,
            says="Another driver, such as nouveau, holds the GPU",
            sample="NVRM: The NVIDIA probe routine was not called for 1 device(s).",
            other="the probe routine was called for 2 devices",
        ),
        Signature(
            name="version-magic",
            literal="version magic",
            pattern=r"nvidia[\w-]{0,20}: version magic",
            weight=90,
            says="The nvidia module was built for another kernel",
            sample=(
                "nvidia: version magic '5.4.0-42-generic SMP mod_unload' should "
                "be '5.4.0-48-generic SMP mod_unload'"
            ),
            other="zfs: version magic '5.4' should be '5.5'",
        ),
        Signature(
            name="unknown-symbol",
            literal="unknown symbol",
            pattern=r"nvidia[\w-]{0,20}: unknown symbol",
            weight=80,
            says="The nvidia module does not fit the running kernel",
            sample="nvidia_drm: Unknown symbol drm_gem_object_put (err -2)",
            other="zfs: Unknown symbol foo",
        ),
        Signature(
            name="secure-boot",
            literal="secure boot",
            pattern=r"secure ?boot",
            weight=78,
            says="Secure Boot rejects a module that is not signed",
            sample="Secure Boot is enabled",
            other="boot",
            beside=("nvidia-smi|driver",),
        ),
        Signature(
            name="nouveau",
            literal="nouveau",
            pattern=r"nouveau",
            weight=66,
            says="nouveau holds the GPU",
            sample="lsmod shows nouveau",
            other="novo",
            beside=("nvidia-smi has failed|no devices|not loaded|blacklist|failed to load",),
        ),
        Signature(
            name="dkms-words",
            literal="dkms",
            pattern=r"dkms.{0,80}(?:fail|error|not (?:built|installed))",
            weight=76,
            says="DKMS could not build the nvidia module",
            sample="dkms build failed for nvidia",
            other="dkms status",
            beside=("nvidia",),
        ),
        Signature(
            name="libkmod",
            literal="could not find module by name",
            pattern=r"could not find module by name='nvidia",
            weight=90,
            says="There is no nvidia module for the running kernel",
            sample=(
                "modprobe: ERROR: ../libkmod/libkmod.c: could not find module "
                "by name='nvidia_current'"
            ),
            other="could not find module by name='zfs'",
        ),
        Signature(
            name="key-rejected",
            literal="key was rejected by service",
            pattern=r"key was rejected by service",
            weight=91,
            says="Secure Boot rejects the module: its key is not enrolled",
            sample="modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
            other="key was rejected",
            beside=("nvidia",),
        ),
        Signature(
            name="operator-kernel",
            literal="could not resolve linux kernel version",
            pattern=r"could not resolve Linux kernel version",
            weight=90,
            says="The driver container finds no kernel headers for the running kernel",
            sample="Could not resolve Linux kernel version",
            other="Resolving Linux kernel version...",
            stands=True,
            cures=(
                Cure(
                    text=(
                        "Let the driver pod reach a package source with the headers of the running "
                        "kernel, move the node to a kernel that it has, or use precompiled drivers."
                    ),
                    zh="让驱动 Pod 能访问含当前内核头文件的软件源，或换内核，或用预编译驱动。",
                    commands=("uname -r",),
                ),
            ),
        ),
        Signature(
            name="operator-packages",
            literal="failed to install elfutils packages",
            pattern=r"FATAL: failed to install elfutils packages",
            weight=88,
            says="The driver container cannot install what it needs to build the kernel module",
            sample="FATAL: failed to install elfutils packages. RHEL entitlement may be missing.",
            other="installed elfutils packages",
        ),
        Signature(
            name="headers-unavailable",
            literal="kernel-",
            pattern=(
                r"(?:unable to find a match|no match for argument|no package available|nothing "
                r"provides).{0,40}\bkernel-(?:headers|devel)-\d"
            ),
            weight=84,
            says="There are no headers of the running kernel to build the nvidia module with",
            sample="Error: Unable to find a match: kernel-headers-4.18.0-305.el8.x86_64",
            other="kernel-headers-4.18.0-305 is installed",
            beside=("nvidia",),
        ),
        Signature(
            name="headers-unlocated",
            literal="unable to locate package linux-headers-",
            pattern=r"unable to locate package linux-headers-\d",
            weight=84,
            says="There are no headers of the running kernel to build the nvidia module with",
            sample="E: Unable to locate package linux-headers-5.15.0-1023-aws",
            other="linux-headers-5.15.0-1023-aws is already the newest version",
            beside=("nvidia",),
        ),
    ),
    cures=(
        Cure(
            text="Load the module, and read why it does not load.",
            zh="加载模块，并查看加载失败的原因。",
            commands=(
                "sudo modprobe nvidia",
                "sudo dmesg | grep -iE 'nvrm|nvidia' | tail",
            ),
        ),
        Cure(
            text=(
                "After a kernel update build it for the running kernel: install "
                "its headers, then let DKMS build. With Secure Boot enrol "
                "the key (mokutil)."
            ),
            zh=(
                "内核升级后需为当前内核重新编译：先装内核头文件，再用 DKMS "
                "编译；开启安全启动时要注册密钥（mokutil）。"
            ),
            commands=(
                "sudo apt install linux-headers-$(uname -r)",
                "sudo dkms autoinstall",
            ),
        ),
    ),
)
