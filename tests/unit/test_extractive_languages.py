"""Turns in Portuguese, Spanish and Chinese, and in languages without rules: dates, numbers and names survive."""

from datetime import UTC, date, datetime

import pytest

from memory import extractive
from memory.observation import Draft, Interval, Kind, Priority
from memory.reckoning.language import language_of
from memory.turn import Role, Turn

MONDAY = datetime(2026, 3, 2, 10, tzinfo=UTC)


def observed(text: str) -> list[Draft]:
    return extractive.observe([Turn(1, 1, Role.USER, text, MONDAY, len(text))], [])


def texts(text: str) -> list[str]:
    return [draft.text for draft in observed(text)]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I moved to Porto last week", "en"),
        ("Ontem eu fui ao médico e ele não estava", "pt"),
        ("La semana pasada compré un coche y es rojo", "es"),
        ("我昨天搬到了上海", "zh"),
        ("昨日は東京へ行きました", "ja"),
        ("어제 서울에 갔어요", "other"),
        ("Rua das Flores 12", "en"),
        ("Вчера я купил дом", "other"),
        ("", "en"),
        ("Ich ziehe im Mai um", "de"),
        ("Nous avons deux enfants", "fr"),
        ("Abbiamo due gatti e un cane", "it"),
        ("Mam psa i kota z Łomży", "other"),
        ("I met Łukasz and his wife", "en"),
        ("मैं दिल्ली में रहता हूँ", "other"),
    ],
)
def test_the_language_of_a_turn_is_told_by_its_small_words(text: str, language: str) -> None:
    assert language_of(text) == language


def test_portuguese() -> None:
    drafts = observed("Olá! Tudo bem? Ontem fui ao médico e ele receitou 20 mg de omeprazol. Obrigada!")
    assert [draft.text for draft in drafts] == [
        "Usuário: 1 de março de 2026 fui ao médico e ele receitou 20 mg de omeprazol"
    ]
    assert drafts[0].refers_to == Interval(date(2026, 3, 1), date(2026, 3, 1))


def test_spanish() -> None:
    drafts = observed("Hola, me llamo Lucía. La semana pasada compré un coche rojo por 12.000 euros. ¿Puedes ayudarme?")
    assert [draft.text for draft in drafts] == [
        "Usuario: me llamo Lucía",
        "Usuario: 23 de febrero–1 de marzo de 2026 compré un coche rojo por 12.000 euros",
    ]
    assert drafts[0].priority is Priority.HIGH


def test_chinese() -> None:
    drafts = observed("你好！我叫王小明，昨天搬到了上海。我对花生过敏。你觉得怎么样？谢谢")
    assert [draft.text for draft in drafts] == ["用户: 我叫王小明，2026年3月1日搬到了上海", "用户: 我对花生过敏"]
    assert drafts[0].refers_to == Interval(date(2026, 3, 1), date(2026, 3, 1))


def test_chinese_plans_are_plans() -> None:
    (draft,) = observed("我下周三要去北京出差")
    assert draft.kind is Kind.PLAN
    assert draft.text == "用户: 我2026年3月11日要去北京出差"


@pytest.mark.parametrize(
    "text",
    [
        "Wczoraj kupiłem dom w Łodzi.",
        "東京に住んでいます。",
        "어제 서울에 갔어요.",
        "Вчера я купил дом в Омске.",
        "मेरी दो बेटियाँ हैं।",
        "எனக்கு இரண்டு மகள்கள் உள்ளனர்.",
        "ฉันแพ้ถั่วลิสง",
        "میری دو بیٹیاں ہیں۔",
        "لدي ابنتان في تونس.",
        "Έχω δύο κόρες στην Πάτρα.",
        "Nina binti wawili wanaosoma Arusha.",
    ],
)
def test_a_language_without_rules_keeps_its_sentences(text: str) -> None:
    (said,) = texts(text)
    assert said.endswith(text.rstrip(".。।۔"))


@pytest.mark.parametrize(
    "text", ["谢谢", "你好", "好的", "Obrigado!", "¡Gracias!", "Bom dia!", "¿Dónde está?", "你在吗", "嗯", "Tudo bem"]
)
def test_courtesies_in_other_languages_leave_no_line(text: str) -> None:
    assert texts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "आप कहाँ रहते हैं?",
        "أين تسكن؟",
        "Πού μένεις;",
        "धन्यवाद।",
        "Спасибо!",
        "Vielen Dank!",
        "Merci beaucoup !",
        "Grazie mille!",
    ],
)
def test_questions_and_thanks_in_any_language_leave_no_line(text: str) -> None:
    assert texts(text) == []


def test_a_turn_without_rules_for_its_language_keeps_each_statement_and_no_question() -> None:
    assert texts("मुझे चाय पसंद है। आपको क्या पसंद है? मेरी बहन पुणे में है।") == ["User: मुझे चाय पसंद है", "User: मेरी बहन पुणे में है"]


@pytest.mark.parametrize(
    ("text", "note", "day"),
    [
        ("Gestern habe ich ein Fahrrad gekauft.", "1. März 2026 habe ich ein Fahrrad gekauft", date(2026, 3, 1)),
        ("Am 3. Mai 2026 heirate ich.", "Am 3. Mai 2026 heirate ich", date(2026, 5, 3)),
        ("Demain je vends mon vélo.", "3 mars 2026 je vends mon vélo", date(2026, 3, 3)),
        ("Ieri ho venduto la bici.", "1 marzo 2026 ho venduto la bici", date(2026, 3, 1)),
    ],
)
def test_german_french_and_italian_dates_stand_in_their_own_words(text: str, note: str, day: date) -> None:
    (draft,) = observed(text)
    assert (draft.text, draft.refers_to) == (f"User: {note}", Interval(day, day))


def test_a_month_keeps_its_preposition() -> None:
    assert texts("Queremos vender la casa en junio.") == ["Usuario: Queremos vender la casa en junio de 2026"]
