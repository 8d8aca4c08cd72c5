"""The words of the site that gpucheck itself never says, in English and in Chinese."""

from gpucheck.language import Language

Words = dict[str, str]

WORDS: dict[Language, Words] = {
    "en": {
        "findings": "Findings",
        "guides": "Guides",
        "project": "Project",
        "pages": "Pages",
        "contents": "On this page",
        "examples": "Files in {folder}",
        "about": "All findings of gpucheck, by family. `gpucheck explain NAME` prints these pages.",
        "other": "中文",
        "aside": "{of} ({aside})",
        "comma": ", ",
        "family": "Family: {family}",
        "fix": "Fix",
        "meaning": "What it means",
        "called": "gpucheck calls it {slug}.",
        "evidence": "How gpucheck recognises it",
        "messages": "Messages",
        "search": "Search",
        "search-for": "a message that you see, or words",
        "search-none": "No page has these words.",
        "search-script": "The search needs JavaScript. A page of its own lists all findings.",
        "messages-about": (
            "`gpucheck triage` knows these lines. It reads them together with the rest of a text, "
            "so one line alone may not be enough."
        ),
        "certain": "Lines that name this cause",
        "likely": "Lines that point to this cause",
        "possible": "Lines that other causes have as well",
        "related": "Related findings",
        "suppressed-by": "This finding is not reported beside these, because they explain it:",
        "suppresses": "These are not reported beside this finding, because it explains them:",
        "check": (
            "To find out whether your machine has it, [install gpucheck](../docs/install.md) and "
            "run `gpucheck`: it prints the commands that fit your machine. To examine a machine "
            "it needs neither root nor the network."
        ),
        "recommend": (
            "`gpucheck recommend` ([install gpucheck](../docs/install.md)) prints the command that "
            "installs a PyTorch for your GPU and driver. It also does so for a machine that you "
            "describe:"
        ),
        "description": "{title} - causes, how gpucheck recognises it, messages and fixes",
    },
    "zh": {
        "findings": "问题一览",
        "guides": "文档",
        "project": "项目",
        "pages": "全部页面",
        "contents": "本页目录",
        "examples": "{folder} 中的文件",
        "about": (
            "gpucheck 能找出的全部问题，按类别排列。`gpucheck --lang zh explain 名称` "
            "显示同样的内容。"
        ),
        "other": "English",
        "aside": "{of}（{aside}）",
        "comma": "，",
        "family": "类别：{family}",
        "fix": "解决办法",
        "meaning": "含义",
        "called": "gpucheck 把它称为 {slug}。",
        "evidence": "gpucheck 如何识别",
        "messages": "报错信息",
        "search": "搜索",
        "search-for": "粘贴你看到的报错信息，或输入关键词",
        "search-none": "没有页面包含这些词。",
        "search-script": "搜索需要 JavaScript。全部问题另有一个页面列出。",
        "messages-about": (
            "`gpucheck triage` 认识以下各行。"
            "它会结合整段文本来判断，因此单独一行可能还不足以下结论。"
        ),
        "certain": "直接说明这一原因的信息",
        "likely": "指向这一原因的信息",
        "possible": "其他原因也会产生的信息",
        "related": "相关问题",
        "suppressed-by": "出现以下任一问题时，不再报告本问题，因为它们已能解释：",
        "suppresses": "出现本问题时，不再报告以下问题，因为本问题已能解释：",
        "check": (
            "想知道你的机器有没有这个问题，请[安装 gpucheck](../docs/install.md)，再运行 "
            "`gpucheck --lang zh`：它会给出适合你机器的命令。检查机器时不需要 root 权限，也不联网。"
        ),
        "recommend": (
            "`gpucheck --lang zh recommend`（[安装 gpucheck](../docs/install.md)）会给出安装命令，"
            "所装的 PyTorch 适合你的 GPU 和驱动。也可以描述一台机器："
        ),
        "description": "{title}：原因、gpucheck 如何识别、报错信息和解决办法",
    },
}

THEME_IN_CHINESE = {
    "Toggle site navigation sidebar": "打开或关闭导航栏",
    "Toggle table of contents sidebar": "打开或关闭本页目录",
    "Toggle Light / Dark / Auto color theme": "切换浅色、深色或自动配色",
    "Toggle navigation of ": "展开或收起：",
    "Skip to content": "跳到正文",
    "Back to top": "回到顶部",
    r"Made with (<a [^>]{1,99}>Sphinx</a>) and <a [^>]{1,99}>@pradyunsg</a>'s"
    r"\s{1,99}(<a [^>]{1,99}>Furo</a>)": r"由 \1 和 \2 生成",
}
"""What furo says in English in every language, as patterns."""


def words(language: Language) -> Words:
    """Return the words of one language."""
    return WORDS[language]
