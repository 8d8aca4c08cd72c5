"""In which language somebody wrote a ticket, whatever its programs printed."""
# ruff: noqa: RUF001  # other languages have their own punctuation

from each import each

from gpucheck.ticket.intake import Intake
from gpucheck.ticket.prose import language_of

TRACEBACK = """Traceback (most recent call last):
  File "/home/user/训练/train.py", line 2, in <module>
    model.cuda()  # 把模型放到显卡上
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. If reserved memory is large
try setting max_split_size_mb to avoid fragmentation. See documentation for Memory Management
"""
CHINESE = {
    "only words": "两张卡，跑完一个 epoch 时报错，请问怎么解决？",
    "words and a log": f"训练报错，请问如何解决\n\n{TRACEBACK}",
    "a fence": f"训练报错\n```\n{TRACEBACK}```\n",
    "a title alone": f"yolox训练报错\n{TRACEBACK}",
    "a tag before the title": "[Bug] 运行训练脚本的时候报错，怎么解决？",
    "a tag with a colon": f"[Question]: 显卡用不了\n\n{TRACEBACK}",
    "many terms": "用 xtuner 在 V100 上训练 internlm-7b 模型出现 OOM，batch size 已经是 1",
    "a Chinese form": f"### 问题描述\n训练时显存不足\n### 环境\nUbuntu\n{TRACEBACK}",
    "an English form": "### Describe the bug\n- [x] I have searched the issues\n显卡用不了\n",
    "Chinese after English lines of a program": "INFO my model is loading, we would wait\n报错了\n",
}
ENGLISH = {
    "only words": "I tried to train my model and it does not work. Why?",
    "only a log": TRACEBACK,
    "Chinese in a path": "I get this on my laptop:\nC:\\Users\\张三\\办公\\x.py: error\n",
    "Chinese in code": 'Hi, this fails for me\n    prompt = "介绍一下你自己"\n',
    "a logger's line in Chinese": "[INFO] 正在加载模型\nI get this on my laptop\n",
    "Chinese in a fence": "My prompt gives nonsense:\n```\n请介绍一下你自己，谢谢\n```\nThanks\n",
    "Japanese": "学習を開始しました。エラーが発生しました。\n正則化画像の数: 0",
    "a form in two languages": "### System Info / 系統信息\nubuntu\n### Version / 版本信息\n1.0\n",
    "a message of Windows": "Hi, I installed torch but my program fails, could anyone help?\n"
    "Why does it not work? We would like to use it.\nOSError: [WinError 126] 找不到指定的模块。\n",
    "nothing": "",
}


def language(text: str) -> str:
    intake = Intake()
    intake.add_bytes(text.encode())
    return language_of(intake.lines)


@each("name", CHINESE)
def test_a_ticket_in_chinese(name: str) -> None:
    assert language(CHINESE[name]) == "zh"


@each("name", ENGLISH)
def test_a_ticket_in_another_language(name: str) -> None:
    assert language(ENGLISH[name]) == "en"
