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
