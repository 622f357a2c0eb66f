"""German, French and Italian dates, seen from Wednesday 24 May 2023."""

from datetime import UTC, datetime

import pytest

from memory import dates

WEDNESDAY = datetime(2023, 5, 24, 10, tzinfo=UTC)


def the_days(text: str) -> list[str]:
    found = [one.interval for one in dates.resolve(text, WEDNESDAY)]
    return [str(one.start) if one.start == one.end else f"{one.start}..{one.end}" for one in found]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Gestern war ich im Kino", "2023-05-23"),
        ("gestern", "2023-05-23"),
        ("Vorgestern hat es geregnet", "2023-05-22"),
        ("Übermorgen reise ich ab", "2023-05-26"),
        ("Morgen habe ich frei", "2023-05-25"),
        ("Letzte Woche sind wir umgezogen", "2023-05-15..2023-05-21"),
        ("Im nächsten Monat fange ich an", "2023-06-01..2023-06-30"),
        ("letztes Jahr", "2022-01-01..2022-12-31"),
        ("Vor 3 Tagen kam der Brief", "2023-05-21"),
        ("vor zwei Wochen", "2023-05-08..2023-05-14"),
        ("in drei Wochen", "2023-06-12..2023-06-18"),
        ("am 8. Mai 2021 geboren", "2021-05-08"),
        ("im März 2022", "2022-03-01..2022-03-31"),
        ("Im Juni waren wir in Köln", "2022-06-01..2022-06-30"),
        ("Im Juni werden wir heiraten", "2023-06-01..2023-06-30"),
        ("Der Termin ist am 3. November", "2023-11-03"),
        ("letzten Freitag", "2023-05-19"),
        ("am Freitag haben wir gegessen", "2023-05-19"),
    ],
)
def test_german_dates(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Hier j'ai vendu ma voiture", "2023-05-23"),
        ("avant-hier", "2023-05-22"),
        ("Demain je pars", "2023-05-25"),
        ("après-demain", "2023-05-26"),
        ("la semaine dernière", "2023-05-15..2023-05-21"),
        ("Nous partons le mois prochain", "2023-06-01..2023-06-30"),
        ("l'année dernière", "2022-01-01..2022-12-31"),
        ("Il y a 3 jours il a plu", "2023-05-21"),
        ("il y a deux semaines", "2023-05-08..2023-05-14"),
        ("dans trois jours", "2023-05-27"),
        ("née le 8 mai 2021", "2021-05-08"),
        ("le 1er mars 2022", "2022-03-01"),
        ("Nous allons ouvrir en novembre", "2023-11-01..2023-11-30"),
        ("Nous avons ouvert en novembre", "2022-11-01..2022-11-30"),
        ("vendredi dernier", "2023-05-19"),
    ],
)
def test_french_dates(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Ieri ho venduto la macchina", "2023-05-23"),
        ("l'altro ieri", "2023-05-22"),
        ("Domani parto", "2023-05-25"),
        ("dopodomani", "2023-05-26"),
        ("la settimana scorsa", "2023-05-15..2023-05-21"),
        ("il mese prossimo", "2023-06-01..2023-06-30"),
        ("l'anno scorso", "2022-01-01..2022-12-31"),
        ("3 giorni fa pioveva", "2023-05-21"),
        ("due settimane fa", "2023-05-08..2023-05-14"),
        ("tra tre giorni", "2023-05-27"),
        ("nata l'8 maggio 2021", "2021-05-08"),
        ("Apriremo in novembre", "2023-11-01..2023-11-30"),
        ("Siamo stati a Bari in novembre", "2022-11-01..2022-11-30"),
        ("venerdì scorso", "2023-05-19"),
    ],
)
def test_italian_dates(text: str, days: str) -> None:
    assert the_days(text) == [days]


@pytest.mark.parametrize(
    "text",
    [
        "Guten Morgen! Ich trinke am Morgen Tee.",
        "Jeden Montag schwimme ich",
        "Ich bin hier",
        "jedes Jahr im Juni",
        "Tous les lundis je nage",
        "chaque année en juin",
        "Ogni lunedì nuoto",
        "The war was hard, mars bars were sweet and she would fain settle here",
        "der 31. Februar 2023",
    ],
)
def test_habits_mornings_and_words_of_other_languages_have_no_date(text: str) -> None:
    assert the_days(text) == []


@pytest.mark.timeout(30)
@pytest.mark.parametrize("text", ["gestern ", "ich vor drei ", "je hier ", "io ieri fa ", "im mai 3. "])
def test_a_page_of_such_words_is_read_in_time(text: str) -> None:
    assert isinstance(dates.resolve(text * (200_000 // len(text)), WEDNESDAY), list)
