"""Lines of tickets and logs with something private, and what must not be left of each.

They were written by somebody who had not read the patterns that find it. Every name is invented.
"""

MORE_LINES = [
    ("Permission denied: '/scratch/users/hildegard.moss/runs/ckpt.pt'", ["hildegard"]),
    (
        "slurmstepd: error: *** JOB 8812 ON quokka-n017 CANCELLED AT 2025-03-01T10:00:00 ***",
        ["quokka"],
    ),
    ("SLURM_JOB_NODELIST=quokka-n[017-020,044]", ["quokka"]),
    ("NodeList=quokka-n021 BatchHost=quokka-n021", ["quokka"]),
    (
        "sparrowhawk:4471:4471 [0] NCCL INFO Bootstrap : Using eno1:10.77.4.19<0>",
        ["sparrowhawk", "10.77"],
    ),
    (
        "ssh -L 8888:localhost:8888 bkramer@login2.hpc.velden-lab.nl",
        ["bkramer", "velden", "login2"],
    ),
    ("origin git@git.velden-lab.nl:vision/secretnet.git (fetch)", ["velden", "secretnet"]),
    (
        "Looking in indexes: https://ci-bot:Zx9-pass.word@pypi.velden-lab.nl/simple",
        ["velden", "Zx9", "ci-bot"],
    ),
    ("Looking in indexes: https://packages.tannhauser.internal/simple", ["tannhauser"]),
    (
        "Channels:\n - https://conda.velden-lab.nl/visionteam\n - defaults",
        ["velden", "visionteam"],
    ),
    ("inet6 fd3a:91c4:7e2b::1f/64 scope global", ["91c4", "7e2b"]),
    ("inet6 fe80::a6bf:1ff:fe2d:33c1%eno1 scope link", ["a6bf", "33c1"]),
    ("mlx5_core 0000:3b:00.0: MAC a4:bf:01:2d:33:c1", ["2d:33"]),
    ("HWaddr A4-BF-01-2D-33-C1", ["2D-33"]),
    ("Node GUID: 0x9c63c00300b1d2e4", ["9c63c003"]),
    ("node guid 9c63:c003:00b1:d2e4", ["c003:00b1"]),
    ("MASTER_ADDR=172.29.88.7 MASTER_PORT=29500", ["172.29"]),
    ("MASTER_ADDR=quokka-n017.cluster.velden-lab.nl", ["quokka", "velden"]),
    ("GITHUB_TOKEN: ghp_q7Wf3kLmN0pRsTuVwXyZ1a2B3c4D5e6F7g8H", ["q7Wf3k"]),
    ("github_pat_11AAQW7YI0abcdEFGHijkl_mnopQRSTuvwxyz0123456789", ["mnopQRST"]),
    ("gho_16C7e42F292c6912E7710c838347Ae178B4a", ["292c6912"]),
    ("glpat-4Kq9ZzTy7WmXcVbNhGfD", ["ZzTy7Wm"]),
    ("aws_access_key_id = AKIAZ7QWERTYUIOPLKJH", ["QWERTYUIOP"]),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYz7Qk1LmNo", ["K7MDENG", "wJalr"]),
    ("AWS_SESSION_TOKEN=IQoJb3JpZ2luX2VjEJr//////////wEaCXVz", ["IQoJb3"]),
    ("HUGGING_FACE_HUB_TOKEN=hf_LkJhGfDsAqWeRtYuIoPzXcVbNm", ["LkJhGf"]),
    ("wandb: ERROR api_key 9f1c2d3e4b5a69788796a5b4c3d2e1f00f1e2d3c not valid", ["9f1c2d3e"]),
    ("WANDB_API_KEY=1f2e3d4c5b6a79880897a6b5c4d3e2f1a0b1c2d3", ["1f2e3d4c"]),
    ("xoxp-90210-3141592-AbCdEfGh", ["3141592"]),
    (
        "posting to https://hooks.slack.com/services/T02ABCDEF/B03GHIJKL/q1W2e3R4t5Y6u7I8",
        ["q1W2e3", "T02ABC"],
    ),
    ("token eyJ0eXAiOiJKV1QiLCJhbGciOiJub25lIn0.eyJ1c2VyIjoiYmtyYW1lciJ9.", ["eyJ1c2Vy"]),
    ("train.py --user bkramer --password Tr0ub4dor-and-3", ["Tr0ub4dor", "bkramer"]),
    ("export OPENAI_API_KEY=sk-proj-aB3dE5fG7hI9jK1lM3nO5p", ["aB3dE5"]),
    ("set ANTHROPIC_API_KEY=sk-ant-api03-QqWwEeRr", ["QqWwEe"]),
    (
        "C:\\Users\\Annelies Vermeer\\AppData\\Local\\Programs\\Python\\Python311\\python.exe",
        ["Annelies", "Vermeer"],
    ),
    (
        'File "C:\\Users\\avermeer\\venv\\Lib\\site-packages\\torch\\__init__.py", line 148',
        ["avermeer"],
    ),
    ("cannot open \\\\NASFJORD02\\projects\\heimdall\\data.bin", ["NASFJORD", "heimdall"]),
    (
        "Author: Annelies Vermeer <annelies.vermeer@velden-lab.nl>",
        ["Annelies", "Vermeer", "velden"],
    ),
    ("HOSTNAME=train-heimdall-7c9f8d6b5-x2lqp", ["heimdall", "x2lqp"]),
    ("pod/train-heimdall-7c9f8d6b5-x2lqp failed in namespace team-heimdall-prod", ["heimdall"]),
    ("kubectl logs train-heimdall-0 -n team-heimdall", ["heimdall"]),
    ("instance i-0f3a9c1d2b4e5f678 (p4d.24xlarge)", ["0f3a9c1d"]),
    (
        "projects/velden-genomics-441/zones/europe-west4-a/instances/a100-heimdall",
        ["velden", "heimdall"],
    ),
    ("ip-10-31-44-7.eu-west-1.compute.internal: Connection refused", ["10-31-44"]),
    ("LM_LICENSE_FILE=27000@flexlm03.velden-lab.nl", ["flexlm03", "velden"]),
    ("ADSKFLEX_LICENSE_FILE=@flexlm04", ["flexlm04"]),
    (
        "GPU 0: NVIDIA H100 (UUID: GPU-9b1f3c2a-77de-4e0b-a1f4-3c55ab01de92)",
        ["9b1f3c2a", "3c55ab01"],
    ),
    ("Serial Number : 1650921034417", ["1650921"]),
    ("NVRM: GPU Board Serial Number: 1650921034418", ["1650921"]),
    ("Linux version 5.15.0-91 (buildd@builder-velden-07) (gcc 11.4.0)", ["velden"]),
    (
        "-e git+https://oauth2:glpat-Qq7@git.velden-lab.nl/v/secretnet.git@main#egg=secretnet",
        ["glpat", "velden"],
    ),
    ("internal-sdk @ file:///data/fennimore/wheels/internal.whl", ["fennimore"]),
    (
        "postgres://svc_train:hunter22x@db07.velden-lab.nl:5432/runs",
        ["svc_train", "hunter22x", "db07", "velden"],
    ),
    (
        "nas-fjord01:/export/heimdall on /mnt/heimdall type nfs4 (rw,addr=10.77.0.5)",
        ["fjord01", "heimdall", "10.77"],
    ),
    ("HTTPS_PROXY=http://hmoss:pr0xYpw@proxy.velden-lab.nl:3128", ["hmoss", "pr0xYpw", "velden"]),
    ("FROM registry.tannhauser.internal:5000/heimdall/train:v12", ["tannhauser", "heimdall"]),
    ("curl -H 'Authorization: Bearer 7f9aQ2mZ8Kx1' http://127.0.0.1", ["7f9aQ2"]),
    ("Authorization: Basic YmtyYW1lcjpxN1lwLTIya2s=", ["YmtyYW1l"]),
    ("machine git.velden-lab.nl login bkramer password q7Yp-22kk", ["velden", "bkramer", "q7Yp"]),
    (
        "$ cat /etc/hosts\n10.77.4.20 quokka-n018 quokka-n018.cluster.velden-lab.nl",
        ["quokka", "velden", "10.77"],
    ),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7qWv\n-----END RSA PRIVATE KEY-----",
        ["MIIEpAIB"],
    ),
    (
        "(base) fennimore@sparrowhawk:~/heimdall$ python train.py",
        ["fennimore", "sparrowhawk", "heimdall"],
    ),
    ("[bkramer@quokka-n017 ~]$ nvidia-smi", ["bkramer", "quokka"]),
    ("(venv) [bkramer@quokka-n017 proj]$ srun nvidia-smi", ["bkramer", "quokka"]),
    ("PS C:\\Users\\avermeer> nvidia-smi", ["avermeer"]),
    ("root@7f3c9d1e22ab:/workspace# nvidia-smi", ["7f3c9d1e22ab"]),
    ("fennimore is not in the sudoers file.  This incident will be reported.", ["fennimore"]),
    (
        "crw-rw---- 1 fennimore visionteam 195, 0 Mar  1 10:00 /dev/nvidia0",
        ["fennimore", "visionteam"],
    ),
    ("drwx------ 2 fennimore domain^users 4096 Mar  1 10:00 runs", ["fennimore"]),
    (
        "DefaultEndpointsProtocol=https;AccountName=veldenstore;AccountKey=Zm9vYmFyYmF6cXV4==",
        ["veldenstore", "Zm9vYmFy"],
    ),
    ("s3://velden-genomics-private/ckpt/last.pt not found", ["velden"]),
    ("https://acct.blob.core.windows.net/c/x?sv=2022-11-02&sig=Ab1%2FCd3%3D", ["Ab1%2F"]),
    (
        "|    0   N/A  N/A      3321      C   /home/fennimore/envs/hd/bin/python   1234MiB |",
        ["fennimore"],
    ),
    (
        "|    0   N/A  N/A      3321      C   ...fennimore/envs/hd/bin/python   1234MiB |",
        ["fennimore"],
    ),
    ("--rdzv_endpoint=quokka-n017:29500", ["quokka"]),
    (
        "[W socket.cpp:663] The client socket has failed to connect to [quokka-n018.velden]:29500",
        ["quokka", "velden"],
    ),
    ("The IPv6 network addresses of (quokka-n018, 29500) cannot be retrieved", ["quokka"]),
    (
        "COMPUTERNAME=DESKTOP-7QK2L9M USERDOMAIN=VELDEN USERNAME=avermeer",
        ["7QK2L9M", "VELDEN", "avermeer"],
    ),
    ("http://quokka-n017:8888/lab?token=3f9c01ab77", ["quokka", "3f9c01ab"]),
    ("/Users/fennimore/Library/Python/3.11/bin/pip", ["fennimore"]),
    ("/Volumes/HeimdallNAS/data is not mounted", ["Heimdall"]),
    ("telegram bot 123456789:AAFq7WmXcVbNhGfDsAqWeRtYuIoPzXcVbNm", ["AAFq7Wm"]),
    ("SENTRY_DSN=https://9f8e7d6c5b4a@o4411.ingest.sentry.io/77", ["9f8e7d6c"]),
    ("COMET_API_KEY=kQ7wErTy9uIoP", ["kQ7wEr"]),
    ("PGPASSWORD=hunter33 psql", ["hunter33"]),
    ("mysql -u root -phunter44x", ["hunter44"]),
    ("sshpass -p hunter55x ssh node", ["hunter55"]),
    ("npm_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", ["C3d4E5"]),
    ("pypi-AgEIcHlwaS5vcmcCJGFiY2RlZmdo", ["AgEIcHl"]),
    ("dckr_pat_QqWwEeRrTtYy12345", ["QqWwEe"]),
    ("AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", ["C3d4E5"]),
    ("[1,0]<stderr>:[quokka-n017:33120] *** Process received signal ***", ["quokka"]),
    ("[rank0]: socket: quokka-n019/10.77.4.21:29500", ["quokka", "10.77"]),
    ("mpirun -H quokka-n017:8,quokka-n018:8 python t.py", ["quokka"]),
    ("Linux sparrowhawk 5.15.0-91-generic #101-Ubuntu SMP x86_64 GNU/Linux", ["sparrowhawk"]),
    ("conda environment: heimdall-prod", ["heimdall"]),
    ("CONDA_DEFAULT_ENV=heimdall-prod", ["heimdall"]),
    ("active env location : /home/fennimore/miniforge3/envs/heimdall", ["fennimore", "heimdall"]),
]
OF_SCHEDULERS = [
    ("sbatch: error: invalid partition specified: plover", ["plover"]),
    ("#SBATCH --partition=plover-a100", ["plover"]),
    ("#SBATCH -p plover-long", ["plover"]),
    (
        "$ srun -p wigeon --gres=gpu:1 -A velden -J heimdall nvidia-smi",
        ["wigeon", "velden", "heimdall"],
    ),
    ("PartitionName=plover Nodes=quokka-n[1-4] Default=YES", ["plover", "quokka"]),
    ("ClusterName=nightjar", ["nightjar"]),
    ("SLURM_CLUSTER_NAME=nightjar SLURM_JOB_PARTITION=wigeon", ["nightjar", "wigeon"]),
    (
        (
            "SLURM_JOB_ACCOUNT=velden SLURM_JOB_NAME=heimdall SLURM_JOB_USER=bkramer "
            "SLURM_JOB_QOS=plover"
        ),
        ["velden", "heimdall", "bkramer", "plover"],
    ),
    (
        (
            "  JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
            "   8812    wigeon heimdall  bkramer  R    1:02:03      2 quokka-n[017-018]"
        ),
        ["wigeon", "heimdall", "bkramer", "quokka"],
    ),
    (
        (
            "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
            "plover*      up 2-00:00:00      4   idle quokka-n[1-4]"
        ),
        ["plover", "quokka"],
    ),
    (
        "JobId=8812 JobName=heimdall-v2 UserId=bkramer(1017) GroupId=biolab(1050) MCS_label=N/A",
        ["heimdall", "bkramer", "biolab"],
    ),
    ("Priority=1 Nice=0 Account=velden QOS=plover", ["velden", "plover"]),
    ("Partition=wigeon AllocNode:Sid=quokka-login:4411", ["wigeon", "quokka"]),
    ("it fails on cluster plover, partition wigeon-long", ["plover", "wigeon"]),
    ("it hangs on the partition wigeon of cluster nightjar.", ["wigeon", "nightjar"]),
    ("current-context: velden-prod", ["velden"]),
    ("kubectl --context velden-prod get nodes", ["velden"]),
    ("arn:aws:eks:eu-west-1:123456789012:cluster/velden", ["velden"]),
    ('Switched to context "gke_velden-441_europe-west4_heimdall".', ["velden", "heimdall"]),
    ("sbatch --reservation=velden_week --qos=plover job.sh", ["velden", "plover"]),
    ("--cluster-name=nightjar", ["nightjar"]),
    ("cluster_name: nightjar", ["nightjar"]),
]
"""What Slurm and Kubernetes print of a cluster, its partitions, accounts and jobs."""

OF_PROGRAMS = [
    (
        (
            "GPU 00000000:4E:00.0\n"
            "    Product Name                          : NVIDIA A100-SXM4-80GB\n"
            "    Serial Number                         : 1564720018846\n"
            "    GPU UUID                              : "
            "GPU-7be1c04d-93f2-58aa-b6e4-20d9f1c7a35e\n"
            "    Board ID                              : 0x4e00"
        ),
        ["1564720018846", "7be1c04d-93f2-58aa-b6e4-20d9f1c7a35e", "20d9f1c7a35e"],
    ),
    (
        (
            'DCGM_FI_DEV_XID_ERRORS{gpu="5",UUID="GPU-e30b7a19-4c5d-1f88-9a02-6b7d51c4ee90'
            '",pci_bus_id="00000000:AB:00.0",device="nvidia5",modelName="NVIDIA H100 '
            '80GB HBM3",Hostname="qvarn-h100-07",DCGM_FI_DRIVER_VERSION="535.161.08",conta'
            'iner="pytorch",namespace="oxlade-nlp",pod="tarrowfinch-ft-worker-3"} 79'
        ),
        ["qvarn-h100-07", "tarrowfinch", "e30b7a19-4c5d-1f88-9a02-6b7d51c4ee90"],
    ),
    (
        (
            "[1843022.518274] NVRM: Xid (PCI:0000:c1:00): 31, pid=2914407, "
            "name=plasmokrig, Ch 00000016, intr 00000000. MMU Fault: ENGINE GRAPHICS "
            "GPCCLIENT_T1_3 faulted @ 0x7f2a_41c00000. Fault is of type FAULT_PDE "
            "ACCESS_TYPE_VIRT_READ"
        ),
        ["plasmokrig"],
    ),
    (
        (
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,mems_allow"
            "ed=0-7,oom_memcg=/slurm/uid_50231/job_9918273/step_0,task_memcg=/slurm/uid_50"
            "231/job_9918273/step_0/task_3,task=lattqcdmx,pid=771204,uid=50231\n"
            "Memory cgroup out of memory: Killed process 771204 (lattqcdmx) "
            "total-vm:183920412kB, anon-rss:131002880kB, file-rss:112044kB, "
            "shmem-rss:0kB, UID:50231 pgtables:268412kB oom_score_adj:0"
        ),
        ["lattqcdmx"],
    ),
    (
        (
            "Mar 14 03:27:51 brennoch3 kernel: [88123.900417] kestrovox[29811]: segfault "
            "at 10 ip 00007f1b8e21a3c4 sp 00007ffd0b3a9e30 error 4 in "
            "libtorch_cuda.so[7f1b6a000000+3c5e2000]"
        ),
        ["brennoch3", "kestrovox"],
    ),
    (
        (
            "kaldrin042:118233:118391 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB/SHARP "
            "[1]mlx5_3:1/IB [RO]; OOB ibp24s0:10.147.36.19<0>"
        ),
        ["kaldrin042", "10.147.36.19"],
    ),
    (
        (
            "[2024-06-11 08:14:22] sylphrack-b12:4417:4980 [1] misc/socket.cc:484 NCCL "
            "WARN socketStartConnect: Connect to fd3a:91c2:7e40:b1::5d17<45123> failed : "
            "Software caused connection abort"
        ),
        ["sylphrack-b12", "fd3a:91c2:7e40:b1::5d17"],
    ),
    (
        (
            "Root Cause (first observed failure):\n"
            "[0]:\n"
            "  time      : 2024-05-02_11:23:01\n"
            "  host      : ostrava-dgx2.cl.veldtmere.ac.uk\n"
            "  rank      : 9 (local_rank: 1)\n"
            "  exitcode  : -6 (pid: 88120)\n"
            "  error_file: /tmp/torchelastic_k3x9/none_w2/attempt_0/1/error.json\n"
            "  traceback : Signal 6 (SIGABRT) received by PID 88120"
        ),
        ["ostrava-dgx2", "veldtmere"],
    ),
    (
        (
            "[W socket.cpp:697] [c10d] The client socket has failed to connect to "
            "[tolvane-g3.hpc.quorrinstead.edu]:29500 (errno: 110 - Connection timed out)."
        ),
        ["tolvane-g3", "quorrinstead"],
    ),
    (
        (
            "JobId=9918273 JobName=zwergfold_ablate\n"
            "   UserId=mtravnik(50231) GroupId=zbiophys(6002) MCS_label=N/A\n"
            "   Priority=4294 Nice=0 Account=prj-ulmenau QOS=normal\n"
            "   JobState=FAILED Reason=NonZeroExitCode Dependency=(null)\n"
            "   Partition=vexgpu AllocNode:Sid=dornlogin2:221847\n"
            "   NodeList=dornc[118,121] BatchHost=dornc118\n"
            "   WorkDir=/gpfs/work/zbiophys/mtravnik/fold"
        ),
        ["mtravnik", "zbiophys", "ulmenau", "vexgpu", "dornlogin2", "dornc118"],
    ),
    (
        (
            "NODELIST      NODES   PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK "
            "WEIGHT AVAIL_FE REASON\n"
            "myrkvid0014       1     skaldq*     drained  128   2:64:1 103100        0   "
            "   1 a100,ib  gpu fell off the bus"
        ),
        ["myrkvid0014", "skaldq"],
    ),
    (
        (
            "             JOBID PARTITION     NAME     USER ST       TIME  NODES "
            "NODELIST(REASON)\n"
            "         4471902_3    zephyrl thrushnt hbrandne  R   11:02:44      2 "
            "fjord-n[07-08]"
        ),
        ["zephyrl", "thrushnt", "hbrandne", "fjord-n"],
    ),
    (
        (
            "JobID|JobName|User|Partition|Account|State|ExitCode|NodeList\n"
            "5530187|gromlyx_eq|ptiihonen|lumenx|proj_466000213|OUT_OF_MEMORY|0:125|nidx005214"
        ),
        ["gromlyx", "ptiihonen", "lumenx", "466000213", "nidx005214"],
    ),
    (
        (
            "slurmstepd: error: *** STEP 9918301.0 ON brannocg114 CANCELLED AT "
            "2024-05-09T22:00:17 DUE TO TIME LIMIT ***\n"
            "srun: error: brannocg[114-115]: tasks 0-7: Terminated"
        ),
        ["brannocg"],
    ),
    (
        (
            "#!/bin/bash -l\n"
            "#SBATCH -A naiss2024-wrexby\n"
            "#SBATCH -w tetralith-gq03\n"
            "#SBATCH --mail-user=linnea.ostblom@mikrovag.se\n"
            "#SBATCH --gpus-per-node=4"
        ),
        ["wrexby", "tetralith-gq03", "ostblom", "mikrovag"],
    ),
    (
        (
            "NAME                              READY   STATUS             RESTARTS      "
            "AGE   IP             NODE                               NOMINATED NODE   "
            "READINESS GATES\n"
            "pikelmoor-llm-6c9f7d5b48-x2k7q    0/1     CrashLoopBackOff   7 (62s ago)   "
            "14m   10.244.19.83   aks-gpunp-31479021-vmss00000a      <none>           <none>"
        ),
        ["pikelmoor", "10.244.19.83", "31479021-vmss00000a"],
    ),
    (
        (
            "  Warning  Failed     2m11s (x4 over 3m40s)  kubelet            Failed to "
            'pull image "harbor.zendovar.io/mlplat/vlm-finetune:0.9.3-cu121": rpc error: '
            "code = Unknown desc = failed to pull and unpack image "
            '"harbor.zendovar.io/mlplat/vlm-finetune:0.9.3-cu121": failed to resolve '
            "reference: pull access denied, repository does not exist or may require "
            "authorization"
        ),
        ["zendovar", "mlplat", "vlm-finetune"],
    ),
    (
        (
            "MountVolume.SetUp failed for volume "
            '"pvc-0b6cf3d2-71ae-4e55-8d0c-e9127fa6b840" : mount failed: exit status 32\n'
            "Mounting command: mount\n"
            "Mounting arguments: -t nfs -o nfsvers=4.1 "
            "isilon-q4.sanktveit.lan:/ifs/zone7/thessaly "
            "/var/lib/kubelet/pods/4cf17b90-2de8-4a63-b5c1-98de03a7f6b2/volumes/kubernetes"
            ".io~nfs/data\n"
            "Output: mount.nfs: Connection timed out"
        ),
        [
            "0b6cf3d2-71ae-4e55-8d0c-e9127fa6b840",
            "isilon-q4",
            "sanktveit",
            "4cf17b90-2de8-4a63-b5c1-98de03a7f6b2",
        ],
    ),
    (
        (
            'Error response from daemon: Get "https://nexus3.bruckhaus-ag.de:8443/v2/": '
            "dial tcp: lookup nexus3.bruckhaus-ag.de on 172.29.14.53:53: no such host"
        ),
        ["nexus3", "bruckhaus", "172.29.14.53"],
    ),
    (
        (
            "CONTAINER ID   IMAGE                                COMMAND                 "
            " CREATED       STATUS                     PORTS     NAMES\n"
            "9e41b7d0c2fa   ghcr.io/wolkenrath/diffuzor:cu124-r8   "
            '"/opt/nvidia/nvidia_…"   3 hours ago   Exited (1) 3 hours ago               '
            "trainer"
        ),
        ["wolkenrath", "diffuzor"],
    ),
    (
        (
            "Looking in indexes: https://download.pytorch.org/whl/cu128, "
            "https://__token__:glpat-Zk4xQ9v7Bn2LmTr8Yw3c@gitlab.ferrolund.no/api/v4/proje"
            "cts/4821/packages/pypi/simple"
        ),
        ["zk4xq9v7bn2lmtr8yw3c", "ferrolund"],
    ),
    (
        (
            "ERROR: Could not install packages due to an OSError: "
            "HTTPSConnectionPool(host='artifactory.nordhaven-sys.com', port=443): Max "
            "retries exceeded with url: /artifactory/api/pypi/ml-virtual/simple/torch/ "
            "(Caused by SSLError(SSLCertVerificationError(1, '[SSL: "
            "CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed "
            "certificate in certificate chain (_ssl.c:1000)')))"
        ),
        ["nordhaven"],
    ),
    (
        (
            "  WARNING: The scripts convert-caffe2-to-onnx, convert-onnx-to-caffe2 and "
            "torchrun are installed in '/afs/cern.ch/user/t/tkolmari/.local/bin' which "
            "is not on PATH."
        ),
        ["tkolmari"],
    ),
    (
        (
            "# packages in environment at /home/ywitherow/miniforge3/envs/seg:\n"
            "#\n"
            "# Name                    Version                   Build  Channel\n"
            "pytorch                   2.1.2           py3.10_cuda12.1_cudnn8.9.2_0    "
            "zorvexlabs"
        ),
        ["ywitherow", "zorvexlabs"],
    ),
    (
        (
            "CondaHTTPError: HTTP 403 FORBIDDEN for url "
            "<https://conda.bluthwerk.org/t/bl-5d0c7e21-94af-4b3e-a6d8-17f2c09be345/geosim"
            "/linux-64/repodata.json>\n"
            "Elapsed: 00:00.214507"
        ),
        ["bluthwerk", "5d0c7e21-94af-4b3e-a6d8-17f2c09be345"],
    ),
    (
        (
            "origin\tgit@gitsrv.kaunerberg.at:lidar/pointformer.git (fetch)\n"
            "origin\tgit@gitsrv.kaunerberg.at:lidar/pointformer.git (push)"
        ),
        ["gitsrv", "kaunerberg"],
    ),
    (
        (
            "The authenticity of host 'merlinx-login2.psiq.ch (129.129.214.87)' can't be "
            "established.\n"
            "ED25519 key fingerprint is SHA256:uT3pN0bRk9zYwqXv1oLh7cDfG5sJ2mEa8iKxW4rVtQo.\n"
            "Are you sure you want to continue connecting (yes/no/[fingerprint])?"
        ),
        ["merlinx-login2", "psiq.ch", "129.129.214.87"],
    ),
    (
        (
            "May  7 08:11:02 gwydir-hn sshd[41822]: Failed password for invalid user "
            "oszkarb from 193.62.118.44 port 51234 ssh2"
        ),
        ["gwydir", "oszkarb", "193.62.118.44"],
    ),
    (
        (
            "4: enp65s0f0np0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state "
            "UP group default qlen 1000\n"
            "    link/ether b8:3f:d2:6e:91:0c brd ff:ff:ff:ff:ff:ff\n"
            "    inet 172.20.41.77/23 brd 172.20.41.255 scope global noprefixroute "
            "enp65s0f0np0\n"
            "    inet6 fe80::ba3f:d2ff:fe6e:910c/64 scope link"
        ),
        ["b8:3f:d2:6e:91:0c", "172.20.41.77", "ba3f:d2ff:fe6e:910c"],
    ),
    (
        (
            "10.113.7.5@o2ib1:10.113.7.6@o2ib1:/tarnfs on /lustre/tarnfs type lustre "
            "(rw,flock,lazystatfs,nouser_xattr)"
        ),
        ["10.113.7.5", "10.113.7.6"],
    ),
    (
        (
            "//fsmoltkau.int.grevenstahl.de/Forschung on /mnt/forschung type cifs "
            "(rw,relatime,vers=3.1.1,cache=strict,username=jprickart,uid=1000,noforceuid,g"
            "id=1000,addr=10.61.8.20,file_mode=0755,dir_mode=0755)"
        ),
        ["fsmoltkau", "grevenstahl", "jprickart", "10.61.8.20"],
    ),
    (
        (
            'PS C:\\Users\\Jolanta Prijkel\\source\\sd-webui> python -c "import torch; '
            'print(torch.cuda.is_available())"\n'
            "C:\\Users\\Jolanta Prijkel\\AppData\\Local\\Programs\\Python\\Python310\\python.exe: "
            "No module named torch"
        ),
        ["jolanta", "prijkel"],
    ),
    (
        (
            "Host Name:                     WS-KRAHM-0417\n"
            "OS Name:                       Microsoft Windows 11 Pro\n"
            "Registered Owner:              dkrahmer@fensterlux.eu\n"
            "System Type:                   x64-based PC\n"
            "Domain:                        fensterlux.local\n"
            "Logon Server:                  \\\\DCFLX02"
        ),
        ["ws-krahm-0417", "dkrahmer", "fensterlux", "dcflx02"],
    ),
    (
        (
            "rvantongel@LAPTOP-7Q3KZM1P:/mnt/c/Users/Remco van Tongel/llama.cpp$ nvidia-smi\n"
            "Failed to initialize NVML: GPU access blocked by the operating system"
        ),
        ["rvantongel", "7q3kzm1p", "van tongel", "remco"],
    ),
    (
        (
            "[I 2024-05-21 14:02:33.118 ServerApp] "
            "http://wexlnb04:8888/lab?token=3f9c1e7ab2d84065c7f1908e5d6ba3427e10c9d5f8b46a21\n"
            "[I 2024-05-21 14:02:33.118 ServerApp]     "
            "http://127.0.0.1:8888/lab?token=3f9c1e7ab2d84065c7f1908e5d6ba3427e10c9d5f8b46a21"
        ),
        ["wexlnb04", "3f9c1e7ab2d84065c7f1908e5d6ba3427e10c9d5f8b46a21"],
    ),
    (
        ("machine api.wandb.ai\n  login user\n  password 8d2b61f0c94e7a35be1078d3f6529ac4e0b7135d"),
        ["8d2b61f0c94e7a35be1078d3f6529ac4e0b7135d"],
    ),
    (
        (
            "mlflow server --backend-store-uri "
            "postgresql+psycopg2://mlflowsvc:Wq7%21hTzr40@pgcluster.thalmoor.internal:5432"
            "/mlflow --artifacts-destination s3://thalmoor-mlruns-eu/artifacts --host 0.0.0.0"
        ),
        ["wq7%21htzr40", "thalmoor", "mlflowsvc"],
    ),
    (
        (
            'psycopg2.OperationalError: connection to server at "db-halvorsund" '
            "(10.88.77.3), port 5432 failed: FATAL:  password authentication failed for "
            'user "optuna_rw7"'
        ),
        ["halvorsund", "10.88.77.3", "optuna_rw7"],
    ),
    (
        (
            "An error occurred (AccessDenied) when calling the AssumeRole operation: "
            "User: arn:aws:sts::482019375514:assumed-role/eks-ng-role/i-0c7d41e9ab35f2086 "
            "is not authorized to perform: sts:AssumeRole"
        ),
        ["i-0c7d41e9ab35f2086", "0c7d41e9ab35f2086"],
    ),
    (
        (
            "[default]\n"
            "aws_access_key_id = AKIAXV4QZ7RTBM2LYK5E\n"
            "aws_secret_access_key = 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\n"
            "region = eu-central-1"
        ),
        ["xv4qz7rtbm2lyk5e", "pq8vn3/zlr5kwc"],
    ),
    (
        (
            "ERROR: (gcloud.compute.ssh) Could not fetch resource:\n"
            " - The resource 'projects/corvidlab-394817/zones/us-central1-a/instances/rook"
            "ery-a3mega-1' was not found"
        ),
        ["rookery-a3mega"],
    ),
    (
        (
            "Cannot connect to license server system.\n"
            " The license server manager (lmgrd) has not been started yet,\n"
            " the wrong port@host or license file is being used, or the\n"
            " port or hostname in the license file has been changed.\n"
            "Feature:       GPU_SOLVER\n"
            "License path:  27000@lic2.orbexa-cae.fr:27000@flexborne:\n"
            'FlexNet Licensing error:-15,570.  System Error: 115 "Operation now in progress"'
        ),
        ["lic2.orbexa", "flexborne"],
    ),
    (
        (
            "--------------------------------------------------------------------------\n"
            "WARNING: There was an error initializing an OpenFabrics device.\n"
            "\n"
            "  Local host:   tharnwick07\n"
            "  Local device: mlx5_bond_0\n"
            "--------------------------------------------------------------------------"
        ),
        ["tharnwick"],
    ),
    (
        (
            "* Uses proxy env variable https_proxy == "
            "'http://svc_dlbuild:Hx9kRv2Tq@webgw.ottersholm.net:3128'\n"
            "*   Trying 10.200.31.9:3128...\n"
            "* Connected to webgw.ottersholm.net (10.200.31.9) port 3128 (#0)\n"
            "> CONNECT download.pytorch.org:443 HTTP/1.1\n"
            "> Proxy-Authorization: Basic c3ZjX2RsYnVpbGQ6SHg5a1J2MlRx"
        ),
        ["svc_dlbuild", "hx9krv2tq", "ottersholm", "10.200.31.9", "c3zjx2rsynvpbgq6shg5a1j2mlrx"],
    ),
    (
        (
            "$ id\n"
            "uid=1730041822(FELDRAUM\\agkowalew) gid=1730000513(FELDRAUM\\domain users) "
            "groups=1730000513(FELDRAUM\\domain "
            "users),44(video),109(render),1730028844(FELDRAUM\\hpc-ludwik)"
        ),
        ["agkowalew", "feldraum", "ludwik"],
    ),
    (
        (
            "|    0   N/A  N/A         3187422      C   "
            "/home/okafor_nk/venvs/tts/bin/python        41822MiB |"
        ),
        ["okafor_nk"],
    ),
    (
        (
            "    Product Name                          : NVIDIA A100-SXM4-80GB\n"
            "    Serial Number                         : 1654922006731\n"
            "    GPU UUID                              : "
            "GPU-7be1f0d3-49c2-8a5e-b1d7-20f9c36ae418"
        ),
        ["1654922006731", "7be1f0d3-49c2-8a5e-b1d7-20f9c36ae418"],
    ),
    (
        (
            "             JOBID PARTITION     NAME     USER ST       TIME  NODES "
            "NODELIST(REASON)\n"
            "           8841273  pbiolabq  vsprlm2 hlindqvi  R    3:12:44      4 qllnd[041-044]"
        ),
        ["pbiolabq", "hlindqvi", "qllnd"],
    ),
    (
        (
            "   UserId=wtshabalala(30412) GroupId=glabprot(5120) MCS_label=N/A\n"
            "   Priority=48211 Nice=0 Account=def-krzeminska QOS=normal"
        ),
        ["wtshabalala", "glabprot", "krzeminska"],
    ),
    (
        (
            "slurmstepd: error: *** STEP 5520981.0 ON tarng114 CANCELLED AT "
            "2025-02-11T04:12:55 DUE TO TIME LIMIT ***"
        ),
        ["tarng114"],
    ),
    (
        (
            "srun: error: wmbtx042: task 3: Exited with exit code 1\n"
            "srun: Terminating StepId=771204.0"
        ),
        ["wmbtx042"],
    ),
    (
        (
            "#!/bin/bash\n"
            "#SBATCH --account=rrg-vdhoeven\n"
            "#SBATCH --gres=gpu:4\n"
            "#SBATCH --nodelist=zmrgn[03-04]\n"
            "#SBATCH --mail-user=l.vdhoeven@geofys-lab.nl"
        ),
        ["vdhoeven", "zmrgn", "geofys-lab"],
    ),
    (
        (
            "brontes-12:51120:51388 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB "
            "[1]mlx5_1:1/IB [RO]; OOB ib0:10.141.7.23<0>"
        ),
        ["brontes-12", "10.141.7.23"],
    ),
    (
        (
            "[W socket.cpp:697] [c10d] The client socket has failed to connect to "
            "[hydrac3n17.scicorelab.internal]:29500 (errno: 110 - Connection timed out)."
        ),
        ["hydrac3n17", "scicorelab"],
    ),
    (
        (
            "torch.distributed.DistNetworkError: The client socket has timed out after "
            "60000ms while trying to connect to "
            "(ip-10-42-17-203.eu-west-1.compute.internal, 29400)."
        ),
        ["10-42-17-203"],
    ),
    (
        (
            "Root Cause (first observed failure):\n"
            "[0]:\n"
            "  time      : 2025-03-01_22:41:07\n"
            "  host      : axltl9.rz.uni-fantasien.de\n"
            "  rank      : 3 (local_rank: 3)\n"
            "  exitcode  : -9 (pid: 91822)\n"
            "  error_file: <N/A>"
        ),
        ["axltl9", "fantasien"],
    ),
    (
        (
            "NAME                           READY   STATUS             RESTARTS      AGE "
            "  IP             NODE                               NOMINATED NODE   "
            "READINESS GATES\n"
            "vesperlm-sft-6c8d7f9b5-k2xqz   0/1     CrashLoopBackOff   7 (41s ago)   14m "
            "  10.244.31.118   gke-crvdnet-a100-7f31c0d2-m4zt     <none>           <none>"
        ),
        ["vesperlm-sft", "10.244.31.118", "crvdnet"],
    ),
    (
        (
            'E0304 10:11:12.481277    2231 pod_workers.go:1298] "Error syncing pod, '
            'skipping" err="failed to \\"StartContainer\\" for \\"main\\" with '
            'CrashLoopBackOff: \\"back-off 5m0s restarting failed container\\"" '
            'pod="default/aurelianx-worker-0" podUID="b94d1f6a-0c3e-4d57-9a11-6e2fd80c4b3a"'
        ),
        ["aurelianx-worker", "b94d1f6a-0c3e-4d57-9a11-6e2fd80c4b3a"],
    ),
    (
        (
            "  Warning  Failed     12s (x3 over 55s)  kubelet            Failed to pull "
            'image "harbor.velmora-ai.net/mlplat/orbtuner:0.9.3": rpc error: code = '
            "NotFound desc = failed to pull and unpack image "
            '"harbor.velmora-ai.net/mlplat/orbtuner:0.9.3": not found'
        ),
        ["velmora-ai", "orbtuner"],
    ),
    (
        (
            "Unable to connect to the server: dial tcp: lookup "
            "vrdgrs-aks-3f9d21ab.hcp.westeurope.azmk8s.io on 172.29.16.53:53: no such host"
        ),
        ["vrdgrs-aks", "172.29.16.53"],
    ),
    (
        (
            'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-c03aa9de-5f18-47b6-a2d4-91e7b0c85f26",'
            'device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",Hostname="dugngx04"} 41'
        ),
        ["c03aa9de-5f18-47b6-a2d4-91e7b0c85f26", "dugngx04"],
    ),
    (
        (
            "Looking in indexes: https://download.pytorch.org/whl/cu128, "
            "https://jdelacroix:****@nexus.brightmoorco.com/repository/pypi-ml/simple\n"
            "ERROR: Could not find a version that satisfies the requirement torch==2.9.9 "
            "(from versions: none)"
        ),
        ["jdelacroix", "brightmoorco"],
    ),
    (
        (
            "global.extra-index-url='https://__token__:glpat-Zq7xT2mVb9KwRs4LdYpN@gitlab.s"
            "ilikatwerk.io/api/v4/projects/318/packages/pypi/simple'"
        ),
        ["zq7xt2mvb9kwrs4ldypn", "silikatwerk"],
    ),
    (
        (
            "UnavailableInvalidChannel: HTTP 404 NOT FOUND for channel quetzalbio-ml "
            "<https://conda.anaconda.org/quetzalbio-ml>"
        ),
        ["quetzalbio-ml"],
    ),
    (
        (
            "Cloning into 'lidarfuze'...\n"
            "fatal: unable to access "
            "'https://git.tessellonx.dev/percept/lidarfuze.git/': Could not resolve "
            "host: git.tessellonx.dev"
        ),
        ["tessellonx", "percept/lidarfuze"],
    ),
    (
        (
            "origin\thttps://oauth2:ghp_tR8vKq3LmZx71NwYbDcPfHsJ2gUe5A9oXiQd@github.com/pyt"
            "orch/vision.git (fetch)"
        ),
        ["tr8vkq3lmzx71nwybdcpfhsj2gue5a9oxiqd"],
    ),
    (
        (
            "nvaldezr@login2.ferrumhpc.edu: Permission denied "
            "(publickey,gssapi-keyex,gssapi-with-mic)."
        ),
        ["nvaldezr", "ferrumhpc"],
    ),
    (
        (
            "Mar  4 08:02:51 heliodor2 sshd[30114]: Accepted publickey for fhalvorsen "
            "from 192.168.214.77 port 52214 ssh2: ED25519 "
            "SHA256:k0Xq3bVtM1e7dJ2uYw9pLr5zHs8cGfNaTiQoB6vEmRA"
        ),
        ["heliodor2", "fhalvorsen", "192.168.214.77"],
    ),
    (
        (
            "[812345.221904] NVRM: Xid (PCI:0000:3b:00): 31, pid=2210943, "
            "name=foldmeshinf, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS "
            "GPCCLIENT_T1_3 faulted @ 0x7f2a_1c000000. Fault is of type FAULT_PDE "
            "ACCESS_TYPE_VIRT_READ"
        ),
        ["foldmeshinf"],
    ),
    (
        (
            "Feb 18 03:22:41 pelikgpu03 kernel: [1204417.880213] Out of memory: Killed "
            "process 88123 (zorbtrnr) total-vm:412883920kB, anon-rss:251884112kB, "
            "file-rss:0kB, shmem-rss:1024kB, UID:52207 pgtables:611840kB oom_score_adj:0"
        ),
        ["pelikgpu03", "zorbtrnr"],
    ),
    (
        (
            "Unable to find image 'ghcr.io/quillwerk/dreamtunr:2.1' locally\n"
            "docker: Error response from daemon: Head "
            '"https://ghcr.io/v2/quillwerk/dreamtunr/manifests/2.1": denied.'
        ),
        ["quillwerk", "dreamtunr"],
    ),
    (
        (
            "docker run --rm --gpus all -e "
            "WANDB_API_KEY=4e81b7c09d2fa6537be1c8840f93d6a25b70e1cf -v "
            "/home/gvasiliou/data:/data nvcr.io/nvidia/pytorch:24.05-py3 python train.py"
        ),
        ["4e81b7c09d2fa6537be1c8840f93d6a25b70e1cf", "gvasiliou"],
    ),
    (
        (
            "download failed: s3://zephyrn-ckpts-prd/llama/step_1000.pt to "
            "./step_1000.pt An error occurred (403) when calling the HeadObject "
            "operation: Forbidden"
        ),
        ["zephyrn-ckpts-prd"],
    ),
    (
        (
            "export AWS_ACCESS_KEY_ID=AKIAQ7ZT3MWX5RNB2KLD\n"
            "export AWS_SECRET_ACCESS_KEY=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"
        ),
        ["akiaq7zt3mwx5rnb2kld", "wpz8/tn4ekq1rvxo7jmyb", "3lsuchd6gfai9nxe2q"],
    ),
    (
        (
            "NAME              ZONE           MACHINE_TYPE   PREEMPTIBLE  INTERNAL_IP   "
            "EXTERNAL_IP    STATUS\n"
            "mlbox-tnznite-2   us-central1-a  a2-highgpu-1g               10.128.15.207  "
            "34.72.191.83   RUNNING"
        ),
        ["mlbox-tnznite", "10.128.15.207", "34.72.191.83"],
    ),
    (
        (
            '  File "C:\\Users\\Beatrix '
            "Oyelaran\\AppData\\Local\\Programs\\Python\\Python311\\Lib\\site-packages\\torch\\cuda"
            '\\__init__.py", line 293, in _lazy_init\n'
            '    raise AssertionError("Torch not compiled with CUDA enabled")\n'
            "AssertionError: Torch not compiled with CUDA enabled"
        ),
        ["beatrix", "oyelaran"],
    ),
    (
        (
            "zbignw@DESKTOP-7QK4RVL:/mnt/c/Users/zbignw_k/code$ nvidia-smi\n"
            "Failed to initialize NVML: GPU access blocked by the operating system"
        ),
        ["zbignw", "7qk4rvl"],
    ),
    (
        (
            "FileNotFoundError: [WinError 53] The network path was not found: "
            "'\\\\\\\\nasostrv01\\\\Modelle Intern\\\\llama'"
        ),
        ["nasostrv01", "modelle intern"],
    ),
    (
        (
            "HTTPS_PROXY=http://kpetrovski:Wntr%21Fx83qz@proxy.danubbank.local:3128\n"
            "NO_PROXY=localhost,127.0.0.1,.danubbank.local"
        ),
        ["kpetrovski", "wntr%21fx83qz", "danubbank"],
    ),
    (
        (
            "[I 2025-03-02 09:11:51.344 ServerApp] Jupyter Server 2.14.1 is running at:\n"
            "[I 2025-03-02 09:11:51.344 ServerApp] "
            "http://brolgagx1:8888/lab?token=5f0c7d21e9ab4836c1d07fe2984b3a65d8120cfe97b4a1d3"
        ),
        ["brolgagx1", "5f0c7d21e9ab4836c1d07fe2984b3a65d8120cfe97b4a1d3"],
    ),
    (
        (
            "mlflow.exceptions.MlflowException: API request to "
            "http://mlflow.obsidridge.lan:5000/api/2.0/mlflow/runs/create failed with "
            "exception HTTPConnectionPool(host='mlflow.obsidridge.lan', port=5000): Max "
            "retries exceeded with url: /api/2.0/mlflow/runs/create"
        ),
        ["obsidridge"],
    ),
    (
        (
            "sqlalchemy.exc.OperationalError: (psycopg2.OperationalError) connection to "
            'server at "pgherna.intra.labnz" (10.8.44.19), port 5432 failed: FATAL:  '
            'password authentication failed for user "optunarw7"'
        ),
        ["pgherna", "10.8.44.19", "optunarw7"],
    ),
    (
        (
            "(RayTrainWorker pid=4411, ip=10.77.3.45) RuntimeError: CUDA error: out of memory\n"
            "(RayTrainWorker pid=4411, ip=10.77.3.45)   File "
            '"/nfs/homes/tvanderbrg/rl/ppo.py", line 88, in train_step'
        ),
        ["10.77.3.45", "tvanderbrg"],
    ),
    (
        (
            "[2025-02-04 11:20:33,611] [INFO] [runner.py:570:main] cmd = "
            "/home/sjoqvist/miniconda3/envs/ds/bin/python -u -m "
            "deepspeed.launcher.launch --world_info=eyJsb2NhbGhvc3QiOiBbMCwgMV19 "
            "--master_addr=10.211.4.18 --master_port=29500 train.py"
        ),
        ["sjoqvist", "10.211.4.18"],
    ),
    (
        (
            "--------------------------------------------------------------------------\n"
            "WARNING: There was an error initializing an OpenFabrics device.\n"
            "\n"
            "  Local host:   saigand08\n"
            "  Local device: mlx5_2\n"
            "--------------------------------------------------------------------------"
        ),
        ["saigand08"],
    ),
    (
        (
            "Job was executed on host(s) <8*lsfmrtn11>, in queue <gpu>, as user "
            "<vkrishnanp> in cluster <lsf>.\n"
            "</home/vkrishnanp> was used as the home directory.\n"
            "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit."
        ),
        ["lsfmrtn11", "vkrishnanp"],
    ),
    (
        (
            "Job Id: 229184.pbsmgrq1\n"
            "    Job_Name = train\n"
            "    Job_Owner = dmurtaghx@pbslgn1.irchpc.ie\n"
            "    job_state = R\n"
            "    exec_host = tapx0113/0*16"
        ),
        ["dmurtaghx", "pbslgn1", "irchpc", "tapx0113"],
    ),
    (
        (
            " Product Manufacturer  : Supermicro\n"
            " Product Name          : SYS-420GP-TNAR\n"
            " Product Serial        : S411795X9C23871"
        ),
        ["s411795x9c23871"],
    ),
    (
        (
            'fatal: [narwlgx04.prod.ketterix.io]: UNREACHABLE! => {"changed": false, '
            '"msg": "Failed to connect to the host via ssh: ssh: connect to host '
            'narwlgx04.prod.ketterix.io port 22: Connection timed out", "unreachable": true}'
        ),
        ["narwlgx04", "ketterix"],
    ),
    (
        (
            "nfsstt01:/export/mlscratch on /mnt/scratch type nfs4 "
            "(rw,relatime,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp,timeo=600,re"
            "trans=2,sec=sys,clientaddr=10.93.3.14,local_lock=none,addr=10.93.3.2)"
        ),
        ["nfsstt01", "10.93.3.14", "10.93.3.2"],
    ),
]
"""Written by somebody else, who knew only what SECURITY.md promises."""
