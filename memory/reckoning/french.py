"""Dates as French writes them."""

from memory.reckoning.tongue import Tongue, rules_of
from memory.reckoning.words import numbered

FRENCH = Tongue(
    months=numbered(
        (
            "janvier janv", "février fevrier", "mars", "avril", "mai", "juin", "juillet", "août aout", "septembre", "octobre", "novembre",
            "décembre decembre",
        ),
        1,
    ),
    weekdays=numbered(("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"), 0),
    words={
        "avant-hier": -2, "hier": -1, "hier soir": -1, "aujourd'hui": 0, "aujourd’hui": 0, "ce matin": 0, "ce soir": 0,
        "cette nuit": 0, "demain": 1, "demain matin": 1, "demain soir": 1, "après-demain": 2,
    },
    units={
        "jour": "day", "jours": "day", "semaine": "week", "semaines": "week", "week-end": "weekend", "weekend": "weekend",
        "mois": "month", "an": "year", "ans": "year", "année": "year", "années": "year",
    },
    counts=numbered(("un une", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze"), 1),
    last=r"derni(?:er|ère)|pass[ée]e?",
    next=r"prochaine?|qui\svient",
    this=r"cet|cette|ce",
    counted_back=(r"il\sy\sa\s(?:environ\s)?{n}", r"ça\sfait\s{n}"),
    counted_ahead=(r"dans\s(?:environ\s)?{n}",),
    before_month=r"en|au\smois\sde|depuis|jusqu'en|début|mi|fin",
    before_year=r"en|depuis|jusqu'en",
    before_weekday=r"ce",
    turn_follows=True,
    habit=r"tous\sles|toutes\sles|chaque",
    back=r"était|étaient|avait|avons|ai|j'ai|as|a|suis|sommes|sont|est|fut|depuis|[a-zà-ÿ]{2,20}ées?|[a-zà-ÿ]{2,20}és?",
    ahead=(
        r"vais|va|allons|vont|veux|voulons|dois|devons|prévoi[st]|prévoyons|prévue?s?|compte|comptons|décidé\sd['e]\s?[a-zà-ÿ]{2,20}|ouvre|commence"
        r"|arrive|part|échéance|rendez-vous|jusqu'en|[a-zà-ÿ]{1,20}r(?:ai|a|as|ons|ez|ont)"
    ),
)  # fmt: skip
RULES = rules_of(FRENCH)
