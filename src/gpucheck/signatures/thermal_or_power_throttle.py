"""Texts that point to thermal-or-power-throttle."""

from gpucheck.signatures.base import Cure, Signature, Signs

_RESTARTED_ON_PURPOSE = (
    "after a restart",
    "after reboot",
    "only a reboot",
    "until a reboot",
    "until i reboot",
    "reboot fixes",
    "reboot solves",
    "reboot helps",
    "until the restart",
    "systemctl",
    "upgrade",
    "update",
    "secure boot",
)

SIGNS = Signs(
    slug="thermal-or-power-throttle",
    zh="GPU 因温度或供电被降频，或整机因供电而掉电",
    signatures=(
        Signature(
            name="hw-slowdown",
            literal="slowdown",
            pattern=(
                r"(?:HW (?:Thermal |Power Brake )?Slowdown|SW Thermal Slowdown)\s{0,40}: "
                r"Active"
            ),
            weight=88,
            says="The GPU throttles itself: heat or power",
            sample="        HW Thermal Slowdown               : Active",
            other="HW Slowdown : Not Active",
            stands=True,
        ),
        Signature(
            name="words",
            literal="throttl",
            pattern=(
                r"(?:thermal|power|clock)\w{0,8}(?![-_]throttle)(?![-_]or[-_]power).{0,20}(?<!po"
                r"wer[-_])throttl|(?<!power[-_])throttl\w{0,4}.{0,40}(?:thermal|"
                r"temperature|power|gpu|heat)"
            ),
            weight=70,
            says="The GPU throttles: heat or power",
            sample="the GPU is thermal throttling at 93C",
            other="throttle the requests",
        ),
        Signature(
            name="psu",
            literal="psu",
            pattern=r"\bPSU\b.{0,160}|power supply.{0,80}",
            weight=72,
            says="The machine goes down under load: the power supply is the usual cause",
            sample="1400W PSU, any real load on the GPU freezes the machine",
            other="pseudo",
            beside=(
                (
                    "goes down|shuts down|shut down|shutdown|reboot|restarts|"
                    "powers off|freezes|turns off|black screen"
                ),
            ),
        ),
        Signature(
            name="reboots",
            literal="gpu",
            pattern=(
                r"(?:machine|computer|system|pc|server|workstation).{0,60}(?:reboots|"
                r"restarts|shuts down|powers off|turns off|goes down).{0,80}(?:load|"
                r"train|gpu|full)|(?:full|real|heavy|any) load.{0,80}(?:reboots|"
                r"restarts|shuts|goes down|powers off|freezes)"
            ),
            weight=70,
            says="The machine goes down under load: power supply or heat",
            sample="the machine reboots when the GPU is under full load",
            other="the gpu machine reboots nightly",
            beside=(
                (
                    "reboots|restarts|shuts down|powers off|turns off|goes down|"
                    "full load|real load|heavy load|any load"
                ),
            ),
        ),
        Signature(
            name="limit",
            literal="power",
            pattern=(
                r"power (?:limit|cap|supply|brake).{0,60}(?:throttl|slow|shut|"
                r"reboot|crash)|(?:overheat|too hot|temperature).{0,60}(?:shut|"
                r"throttl|slow|crash|reboot)"
            ),
            weight=66,
            says="The GPU throttles or goes down: heat or power",
            sample="the power supply makes it reboot under load",
            other="power",
        ),
        Signature(
            name="reboots-pc",
            literal="reboot",
            pattern=(
                r"\b(?:computer|pc|machine|system|server|workstation|node|laptop)"
                r"\b[^.]{0,40}\b(?<!\ba )(?<!to )(?<!the )(?<!after )(?:reboots?|rebooting)\b"
            ),
            weight=54,
            says="The machine goes down under load: power supply or heat",
            sample="the PC reboots when training starts",
            other="boot",
            beside=("gpu|cuda|rtx|train",),
            unless=_RESTARTED_ON_PURPOSE,
        ),
        Signature(
            name="restarts-pc",
            literal="restart",
            pattern=(
                r"\b(?:computer|pc|machine|system|server|workstation|node|laptop)"
                r"\b[^.]{0,40}\b(?<!\ba )(?<!to )(?<!the )(?<!after )(?:restarts?|restarting)\b"
            ),
            weight=54,
            says="The machine goes down under load: power supply or heat",
            sample="the PC restarts when training starts",
            other="start",
            beside=("gpu|cuda|rtx|train",),
            unless=_RESTARTED_ON_PURPOSE,
        ),
        Signature(
            name="shuts-pc",
            literal="shut",
            pattern=(
                r"\b(?:computer|pc|machine|system|server|workstation|node|laptop)"
                r"\b.{0,40}\bshuts? ?(?:down|off)"
            ),
            weight=54,
            says="The machine goes down under load: power supply or heat",
            sample="the PC shuts down when training starts",
            other="shutter",
            beside=("gpu|cuda|rtx|train",),
            unless=_RESTARTED_ON_PURPOSE,
        ),
        Signature(
            name="powers-pc",
            literal="power",
            pattern=(
                r"\b(?:computer|pc|machine|system|server|workstation|node|laptop)"
                r"\b.{0,40}\bpowers? off"
            ),
            weight=54,
            says="The machine goes down under load: power supply or heat",
            sample="the PC powers off when training starts",
            other="power",
            beside=("gpu|cuda|rtx|train",),
            unless=_RESTARTED_ON_PURPOSE,
        ),
        Signature(
            name="clock-words",
            literal="clock",
            pattern=(
                r"(?:clocks?|frequency|mhz).{0,60}(?:drop|low|stuck|throttl|"
                r"fall|reduc)|(?:drop|low|stuck|throttl|reduc)\w{0,4}.{0,40}(?:clocks?|"
                r"mhz)"
            ),
            weight=56,
            says="The GPU's clock is held down: heat or power",
            sample="the clock drops to 300 MHz",
            other="a clock",
            beside=("gpu|sm clock|nvidia",),
        ),
        Signature(
            name="temp-words",
            literal="°c",
            pattern=r"\b(?:8[5-9]|9\d|10\d) ?°?C\b",
            weight=56,
            says="The GPU is very hot",
            sample="it runs at 92 °C",
            other="20 °C",
            beside=(
                "gpu|nvidia",
                "slow|throttl|crash|reboot|shut",
            ),
        ),
        Signature(
            name="power-cap",
            literal="power cap",
            pattern=r"(?:SW|HW) Power (?:Cap|Brake)(?: Slowdown)?\s{0,30}: Active",
            weight=60,
            says="The GPU is held down by its power limit",
            sample="SW Power Cap : Active",
            other="power cap 250",
            beside=("slow|throttl|brake",),
        ),
        Signature(
            name="gpu-throttled",
            literal="throttl",
            pattern=r"(?:gpu|card).{0,40}(?<!power[-_])throttl",
            weight=66,
            says="The GPU throttles: heat or power",
            sample="the GPU is throttled although it is cool",
            other="throttle",
        ),
        Signature(
            name="cold-reboot",
            literal="reboot",
            pattern=(
                r"(?:cold|hard|sudden|spontaneous|random)\w{0,3} (?:re)?boots?|"
                r"(?:turns?|shuts?|switch\w{0,2}) (?:it ?self )?off (?:hard|"
                r"suddenly)"
            ),
            weight=74,
            says="The machine goes down under load: the power supply is the usual cause",
            sample="after the last step my PC does a cold reboot",
            other="reboot",
            beside=("gpu|cuda|gtx|rtx|nvidia",),
        ),
        Signature(
            name="power-cap-words",
            literal="power cap",
            pattern=r"SW Power Cap",
            weight=62,
            says="The GPU is held down by its power limit",
            sample="SW Power Cap appears at about 240W",
            other="power cap",
            beside=("reduc|slow|lower|word:drop|word:drops|dropped|limit",),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Look at heat and power under load; clean the fans, improve "
                "the air flow, use a power supply and separate cables that "
                "carry the card's peaks."
            ),
            zh="在负载下查看温度与功耗；清理风扇、改善散热，使用能承受峰值的电源和独立供电线。",
            commands=("nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",),
        ),
        Cure(
            text="A lower power limit tells whether power is the cause.",
            zh="调低功耗上限可以判断是否为供电问题。",
            commands=("sudo nvidia-smi -pl 250",),
        ),
    ),
)
