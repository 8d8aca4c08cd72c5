"""Samples of what people paste, written from the formats."""

OF_2019 = """\
Collecting environment information...
PyTorch version: 1.1.0
Is debug build: No
CUDA used to build PyTorch: 9.0.176

OS: Ubuntu 18.04.2 LTS
GCC version: (Ubuntu 7.4.0-1ubuntu1~18.04.1) 7.4.0
CMake version: version 3.10.2

Python version: 3.6
Is CUDA available: Yes
CUDA runtime version: Could not collect
GPU models and configuration: 
GPU 0: GeForce GTX 1080 Ti
GPU 1: GeForce GTX 1080 Ti

Nvidia driver version: 418.56
cuDNN version: Could not collect

Versions of relevant libraries:
[pip] numpy==1.16.3
[conda] pytorch                   1.1.0           py3.6_cuda9.0.176_cudnn7.5.1_0    pytorch
[conda] torchvision               0.3.0           py36_cu9.0.176_1    pytorch
"""  # noqa: W291  # as it is printed

OF_2025 = """\
==============================
        System Info
==============================
OS                           : Ubuntu 22.04.4 LTS (x86_64)
GCC version                  : (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Libc version                 : glibc-2.35

==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.0+cu126
CUDA used to build PyTorch   : 12.6
ROCM used to build PyTorch   : N/A
Python version               : 3.12.9 (main, Feb  5 2025, 08:49:00) [GCC 11.4.0] (64-bit runtime)
Python platform              : Linux-5.15.0-1084-generic-x86_64-with-glibc2.35

Is CUDA available            : True
CUDA runtime version         : 12.4.131
GPU models and configuration :
GPU 0: NVIDIA H100 80GB HBM3
GPU 1: NVIDIA H100 80GB HBM3

Nvidia driver version        : 550.54.15

[pip3] numpy==2.2.5
[pip3] nvidia-cudnn-cu12==9.5.1.17
[pip3] torch==2.7.0
[pip3] torchvision==0.22.0
"""

COMMANDS = """\
$ nvcc -V
nvcc: NVIDIA (R) Cuda compiler driver
Cuda compilation tools, release 11.8, V11.8.89
$ gcc --version
gcc (Ubuntu 13.2.0-4ubuntu3) 13.2.0
$ uname -a
Linux box 6.5.0-15-generic #15-Ubuntu SMP PREEMPT_DYNAMIC Tue Jan  9 UTC 2024 x86_64 GNU/Linux
$ cat /etc/os-release
PRETTY_NAME="Ubuntu 23.10"
$ lspci | grep -i nvidia
01:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev a1)
01:00.1 Audio device: NVIDIA Corporation GA102 High Definition Audio Controller (rev a1)
$ df -h /dev/shm
shm              64M     0   64M   0% /dev/shm
$ ldd --version
ldd (Ubuntu GLIBC 2.38-1ubuntu6) 2.38
$ cat /proc/driver/nvidia/version
NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.154.05  Thu Dec 28 15:37:48 UTC 2023
max locked memory           (kbytes, -l) 8192
"""

OLD = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 390.30                 Driver Version: 390.30                    |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  GeForce GTX 108...  Off  | 00000000:01:00.0  On |                  N/A |
| 23%   38C    P8    17W / 250W |    345MiB / 11177MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
|   1  Tesla K40c          Off  | 00000000:02:00.0 Off |                    2 |
| 23%   41C    P8    20W / 235W |      0MiB / 11441MiB |      0%   E. Process |
+-------------------------------+----------------------+----------------------+
"""

NEW = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.57.04        KMD Version: 610.57.04      CUDA UMD Version: 13.3          |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   36C    P8              4W /  N/A  | Not Supported          |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:C1:00.0 Off |                    0 |
| N/A   36C    P0             64W /  400W |   40000MiB /  81920MiB |      0%      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|    1   N/A  N/A            4242      C   python3                                39990MiB |
+-----------------------------------------------------------------------------------------+
"""

QUERY = """\
==============NVSMI LOG==============

Timestamp                                 : Tue Mar  5 10:11:12 2024
Driver Version                            : 535.54.03
CUDA Version                              : 12.2

Attached GPUs                             : 1
GPU 00000000:3B:00.0
    Product Name                          : NVIDIA A100-SXM4-40GB
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 8x
    Clocks Throttle Reasons
        Idle                              : Not Active
        SW Power Cap                      : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
    FB Memory Usage
        Total                             : 40960 MiB
        Used                              : 3 MiB
    BAR1 Memory Usage
        Total                             : 65536 MiB
    Compute Mode                          : Exclusive_Process
    ECC Mode
        Current                           : Enabled
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            SRAM Uncorrectable            : 1
            DRAM Uncorrectable            : 2
        Aggregate
            SRAM Uncorrectable            : 9
    Remapped Rows
        Uncorrectable Error               : 1
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 91 C
        GPU Slowdown Temp                 : N/A
"""

SESSION = """\
>>> import torch
>>> torch.__version__
'2.1.0+cu118'
>>> torch.version.cuda
'11.8'
>>> torch.cuda.is_available()
False
>>> torch.cuda.get_device_name(0)
'NVIDIA GeForce RTX 4090'
>>> torch.cuda.get_device_capability()
(8, 9)
>>> torch.cuda.get_arch_list()
['sm_50', 'sm_60', 'compute_90']
"""
