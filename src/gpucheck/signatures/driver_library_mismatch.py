"""Texts that point to driver-library-mismatch."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="driver-library-mismatch",
    zh="已加载的内核模块与用户态驱动库版本不一致",
    signatures=(
        Signature(
            name="nvml",
            literal="driver/library version mismatch",
            pattern=r"driver/library version mismatch",
            weight=94,
            says=(
                "NVML of another release than the loaded kernel module: Driver/library "
                "version mismatch"
            ),
            sample="Failed to initialize NVML: Driver/library version mismatch",
            other="the driver and the library have the same version",
            stands=True,
        ),
        Signature(
            name="nvrm-api",
            literal="api mismatch",
            pattern=(
                r"API mismatch: .{0,40}client.{0,60}version (?P<client>\d{3}[\d.]{2,12}),? "
                r"but"
            ),
            weight=96,
            says="The client library is {client}, the loaded kernel module another release",
            sample="NVRM: API mismatch: the client has the version 535.154.05, but",
            other="REST API mismatch: the client is too old",
            stands=True,
        ),
        Signature(
            name="error-803",
            literal="unsupported display driver / cuda driver combination",
            pattern=r"unsupported display driver / cuda driver combination",
            weight=90,
            says="CUDA error 803: the CUDA driver library does not fit the kernel driver",
            sample=(
                "RuntimeError: Unexpected error from cudaGetDeviceCount(). "
                "Error 803: system has unsupported display driver / cuda driver "
                "combination"
            ),
            other="Error 804: forward compatibility was attempted on non supported HW",
            stands=True,
        ),
        Signature(
            name="error-803-number",
            literal="error 803",
            pattern=r"\berror 803\b",
            weight=88,
            says="CUDA error 803: the CUDA driver library does not fit the kernel driver",
            sample="Unexpected error from cudaGetDeviceCount(). Error 803: system has unsup",
            other="error 8030",
            beside=("cuda|nvidia",),
            stands=True,
        ),
        Signature(
            name="803-error",
            literal="803 error",
            pattern=r"\b803 errors?\b",
            weight=84,
            says="CUDA error 803: the CUDA driver library does not fit the kernel driver",
            sample="CUDA gives an 803 error since the update",
            other="line 1803 errored",
            beside=("cuda|nvidia",),
            stands=True,
        ),
        Signature(
            name="error-803-name",
            literal="system_driver_mismatch",
            pattern=r"CUDA_?ERROR_?SYSTEM_?DRIVER_?MISMATCH",
            weight=88,
            says="CUDA error 803: the CUDA driver library does not fit the kernel driver",
            sample="cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            other="CUDA_ERROR_SYSTEM_NOT_READY",
            stands=True,
        ),
        Signature(
            name="dso",
            literal="does not match dso version",
            pattern=(
                r"kernel (?:driver )?version (?P<kernel>\d{3}[\d.]{2,12})\.? "
                r"does not match DSO version (?P<dso>\d{3}[\d.]{2,12})"
            ),
            weight=93,
            says="The kernel module is {kernel}, libcuda is {dso}",
            sample=(
                "kernel version 470.57.2 does not match DSO version 470.82.1 "
                "-- cannot find working devices in this configuration"
            ),
            other="kernel version seems to match DSO: 470.57.2",
            stands=True,
        ),
    ),
    cures=(
        Cure(
            text=(
                "Restart the machine, so that the kernel loads the module "
                "that belongs to the installed libraries; without a restart "
                "unload and load it again."
            ),
            zh="重启机器，让内核加载与已安装驱动库一致的模块；不重启的话可以卸载后重新加载模块。",
            commands=("sudo reboot",),
        ),
    ),
)
