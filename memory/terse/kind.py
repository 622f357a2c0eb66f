"""What kind of fact a sentence states, and how much it matters."""

import re
from datetime import date

from memory.observation import Interval, Kind, Priority

# In the order in which they are tried: the first that matches says the kind. English, Portuguese, Spanish, Chinese.
_CUES = (
    (
        Kind.CORRECTION,
        (
            r"\b(?:i meant|correction|i was wrong|that(?:'s| is) (?:wrong|not right)|no longer|(?:not|n't|no) .{1,60}any ?more"
            r"|(?:moved|switched|changed|went) from .{1,60} to\b|used to .{1,60} but now"
            r"|corrigindo|não é .{1,40}, é|já não|mud\w+ de .{1,40} para"
            r"|mejor dicho|no es .{1,40} sino|ya no|me equivoqué)\b|更正|不是.{1,20}是|不再|改成|改为|改為"
        ),
    ),
    (
        Kind.DECISION,
        (
            r"\b(?:decided|decision|chose|chosen|(?:i|we)(?:'ll| will) go with|going with|went with|settled on|agreed (?:to|on|that)|made up my mind"
            r"|decidi(?:mos|u)?|escolhi|escolhemos|optei|decidí|elegí|elegimos|optamos)\b|决定|決定|选了|選了"
        ),
    ),
    (
        Kind.PREFERENCE,
        r"^\W*(?:\w+\W+){0,3}?(?:(?:please|could you|can you|would you)[ ,]+(?:don't|don’t|do not|never|not|no)|(?:don't|do not|never) \w+ me)\b(?! forget)",
    ),
    (
        Kind.TASK,
        (
            r"\b(?:please|remind me|(?:need|have|got) to|must|(?:shall|should|may) i|(?:like|want) me to|to-?do|can you|could you|would you|make sure|don't forget"
            r"|preciso|por favor|lembr[ea]-me|tenho que|necesito|recuérdame|tengo que)\b|请|請|提醒我|帮我|幫我|需要"
        ),
    ),
    (
        Kind.PLAN,
        (
            r"\b(?:will|won't|i'll|we'll|going to|gonna|plan(?:ning|s|ned)?|hop(?:e|ing) to|looking forward|thinking (?:of|about)|want(?:s|ing)? to"
            r"|next (?:week|month|year|summer|weekend|time)|tomorrow|upcoming|saving for|considering"
            r"|vou|vamos|pretendo|planejo|quero|amanhã|voy a|vamos a|pienso|quiero|planeo|mañana)\b|打算|计划|計劃|准备|準備|明天|将要|想要|下周|下个月|明年"
        ),
    ),
    (
        Kind.PREFERENCE,
        (
            r"\b(?:love|loves|like|likes|prefer|prefers|favou?rite|hate|hates|enjoy|enjoys|can't stand|dislike|fan of|keen on|i'm (?:really )?into|passionate"
            r"|adoro|gosto|prefiro|odeio|favorit[oa]|me gusta|me encanta|prefiero|odio)\b|喜欢|喜歡|最爱|最愛|讨厌|討厭|偏好|爱吃|愛吃"
        ),
    ),
    (
        Kind.ATTRIBUTE,
        r"\b(?:is|are|am|i'm|'s) (?:also )?(?:called|named|married|based|located|retired|engaged|divorced|allergic)\b",
    ),
    (
        Kind.EVENT,
        (
            r"\b(?:went|got|made|took|saw|found|met|won|came|gave|bought|lost|began|wrote|ran|left|sold|visited|was|were|had|did|\w{3,20}ed"
            r"|fui|fomos|comprei|mudei|fiz|foi|ganhei|fue|fuimos|compré|hice|me mudé|gané|\w{3,20}(?:ei|ou|aram|aron))\b|了|过|過"
        ),
    ),
)
_KINDS = tuple((kind, re.compile(cues, re.IGNORECASE)) for kind, cues in _CUES)
# What changes later help, whatever its kind: health, identity, family, work, home, money, deadlines.
_WEIGHTY = re.compile(
    r"\b(?:allerg\w+|diabet\w+|pregnan\w+|vegan|vegetarian|asthma|medication|diagnos\w+|surgery|cancer|injur\w+|hospital|my name|born|birthday"
    r"|kids?|children|married|marriage|wedding|divorc\w+|engaged|daughter|son|wife|husband|moved|address|hired|fired|job|salary|deadline|died|passed away|rent|mortgage|budget|income|reach me"
    r"|alérgic\w+|grávida|vegetarian\w+|vegan\w+|meu nome|nasc\w+|casad\w+|filh[oa]s?|endereço|emprego|prazo"
    r"|alergi\w+|embarazada|me llamo|nací|hij[oa]s?|dirección|trabajo|plazo)\b"
    r"|过敏|過敏|怀孕|懷孕|素食|糖尿病|名字|我叫|出生|生日|结婚|結婚|离婚|離婚|女儿|女兒|儿子|兒子|地址|工作|截止",
    re.IGNORECASE,
)
_DURABLE = {Kind.CORRECTION, Kind.DECISION}


def kind_of(sentence: str, days: Interval | None, said_on: date) -> Kind:
    """The kind that its words give; a date to come makes a plan of what they leave open."""
    for kind, cues in _KINDS:
        if cues.search(sentence):
            return Kind.PLAN if kind is Kind.EVENT and days and days.start > said_on else kind
    if days is None:
        return Kind.ATTRIBUTE
    return Kind.PLAN if days.end > said_on else Kind.EVENT


def priority_of(sentence: str, kind: Kind, days: Interval | None) -> Priority:
    if kind in _DURABLE or _WEIGHTY.search(sentence):
        return Priority.HIGH
    if days is not None or kind in {Kind.PLAN, Kind.TASK}:
        return Priority.MEDIUM
    return Priority.MEDIUM if kind in {Kind.EVENT, Kind.PREFERENCE} else Priority.LOW
