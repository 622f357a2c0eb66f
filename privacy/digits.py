"""The table of ids made of digits: how each is written, what proves it, which words announce it."""

from dataclasses import dataclass

from privacy import check
from privacy.check import Check, dated, stdnum


@dataclass(frozen=True, slots=True)
class Rule:
    """How one id is written (lengths of groups and what parts them: "3.3.3-2"; `~` is any separator, `*` a comma too), and what it takes.

    `always` shapes count wherever they stand, `alone` shapes also where the text is nothing but the number, which is an
    answer or a field, and all beside a cue of one of `families`.
    """

    kind: str
    valid: Check
    families: frozenset[str]
    always: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    glued: bool = False  # letters may touch it, and a word like "order" before it means nothing


@dataclass(frozen=True, slots=True)
class Loose:
    """What a cue makes of any number of so many digits: a mistyped id is as personal as a right one."""

    kind: str
    fewest: int
    most: int
    groups: int = 6  # of digits, at most


def _rule(
    kind: str, valid: Check, families: str, *, always: str = "", alone: str = "", beside: str = "", glued: bool = False
) -> Rule:
    def shapes(listed: str) -> tuple[str, ...]:
        return tuple(shape.replace("_", " ") for shape in listed.split())

    return Rule(kind, valid, frozenset(families.split()), shapes(always), shapes(alone), shapes(beside), glued)


def _danish(digits: str) -> bool:
    return check.varied(digits) and dated(digits, slice(4, 6), slice(2, 4), slice(0, 2))


def _canadian(digits: str) -> bool:
    return digits[0] not in "08" and check.luhn(digits)


RULES = (
    _rule(
        "CREDIT_CARD",
        check.card,
        "card",
        always="4*4*4*4 4*6*5 4*6*4 4*4*4*4*3 14 15 16 17 18 19",
        alone="13",
        glued=True,
    ),
    _rule("CPF", check.cpf, "cpf", always="3~3~3~2 9~2 11"),
    _rule("CNPJ", stdnum("br.cnpj"), "cnpj", always="2~3~3~4~2 8~4~2 8~6 12~2 14", glued=True),
    _rule("US_SSN", check.ssn, "ssn", always="3-2-4 3.2.4", beside="3~2~4 9 3~6 5~4"),
    _rule("US_ITIN", check.itin, "ssn", always="3-2-4 3-6 5-4", beside="3~2~4 9"),
    _rule("CA_SIN", _canadian, "sin", always="3-3-3", alone="3_3_3 9"),
    _rule("UK_NHS", stdnum("gb.nhs"), "nhs", always="3_3_4 3-3-4", beside="10"),
    _rule("IN_AADHAAR", check.aadhaar, "aadhaar identity", always="4_4_4 4-4-4", alone="12"),
    _rule("PL_PESEL", stdnum("pl.pesel"), "pesel identity", alone="11"),
    _rule("TR_NATIONAL_ID", stdnum("tr.tckimlik"), "kimlik identity", alone="11", beside="3_3_3_2"),
    _rule("DE_TAX_ID", stdnum("de.idnr"), "steuer", always="2_3_3_3", alone="11"),
    _rule("DE_TAX_ID", stdnum("iso7064.mod_11_10"), "steuer", beside="11"),
    _rule("DE_TAX_NUMBER", check.varied, "steuer", beside="3/3/5 2/3/5 3/4/4 2/4/4 13"),
    _rule("PT_NIF", stdnum("pt.nif"), "nif dni", beside="9 3~3~3"),
    _rule("FR_NIR", stdnum("fr.nir"), "nir rente", always="15 13~2 1~2~2~2~3~3~2"),
    _rule("CH_AHV", stdnum("ch.ssn"), "ahv rente", always="13 3.4.4.2"),
    _rule("AT_VNR", stdnum("at.vnr"), "rente", beside="10 4~6"),
    _rule("NL_BSN", stdnum("nl.bsn"), "bsn", beside="9 3~3~3 4~2~3"),
    _rule("BE_NN", stdnum("be.nn"), "rijksregister identity", always="2.2.2-3.2", beside="11"),
    _rule("SE_PERSONNUMMER", stdnum("se.personnummer"), "personnummer identity", always="6-4 8-4", alone="10 12"),
    _rule("NO_FNR", stdnum("no.fodselsnummer"), "personnummer identity", always="11 6_5"),
    _rule("DK_CPR", _danish, "personnummer", beside="6~4 10"),
    _rule("IS_KENNITALA", stdnum("is_.kennitala"), "personnummer", beside="6-4 10"),
    _rule("EE_IK", stdnum("ee.ik"), "identity", beside="11"),
    _rule("LT_AK", stdnum("lt.asmens"), "identity", beside="11"),
    _rule("LV_PK", stdnum("lv.pvn"), "identity", beside="6-5 11"),
    _rule("CZ_RC", stdnum("cz.rc"), "oib", always="6/4", beside="6/3 10"),
    _rule("RO_CNP", stdnum("ro.cnp"), "oib identity", beside="13"),
    _rule("BG_EGN", stdnum("bg.egn"), "oib", beside="10"),
    _rule("HR_OIB", stdnum("hr.oib"), "oib", beside="11"),
    _rule("YU_JMBG", stdnum("si.emso"), "oib", beside="13"),
    _rule("GR_AMKA", stdnum("gr.amka"), "oib", beside="11"),
    _rule("UA_RNTRC", stdnum("ua.rntrc"), "identity", beside="10"),
    _rule("CN_RIC", stdnum("cn.ric"), "chinese identity", always="18"),
    _rule("JP_MY_NUMBER", stdnum("jp.in_"), "japanese", beside="12 4~4~4"),
    _rule("KR_RRN", check.korean_checked, "rrn identity", always="6-7", alone="13"),
    _rule("KR_RRN", check.korean, "rrn identity", beside="6-7"),
    _rule("KR_FRN", check.korean_foreigner, "rrn identity", always="6-7", alone="13"),
    _rule("TH_TNIN", check.thai, "thai identity", always="1-4-5-2-1", alone="13 1~4~5~2~1"),
    _rule("ZA_ID", check.south_african, "za identity", alone="13 6_4_2_1"),
    _rule("NG_NIN", check.varied, "nin", beside="11"),
    _rule("PH_TIN", check.philippine, "steuer", beside="9 3~3~3 12 3~3~3~3"),
    _rule("AU_ABN", stdnum("au.abn"), "abn", always="2_3_3_3", alone="11"),
    _rule("AU_ACN", stdnum("au.acn"), "abn", alone="9 3~3~3"),
    _rule("AU_TFN", stdnum("au.tfn"), "tfn", alone="9 3~3~3"),
    _rule("AU_MEDICARE", check.medicare, "medicare", always="4_5_1", beside="10 4~5~1"),
    _rule("NZ_IRD", stdnum("nz.ird"), "steuer", beside="9 3~3~3"),
    _rule("IL_ID", stdnum("il.idnr"), "identity", beside="9"),
    _rule("MY_NRIC", stdnum("my.nric"), "nric", always="6-2-4", beside="12"),
    _rule("ID_NIK", stdnum("id.nik"), "nric", beside="16"),
    _rule("PK_CNIC", stdnum("pk.cnic"), "nric", always="5-7-1", beside="13"),
    _rule("CL_RUT", stdnum("cl.rut"), "rut", always="2.3.3-1 1.3.3-1", beside="8-1 7-1"),
    _rule("AR_CUIT", stdnum("ar.cuit"), "cuit", always="2-8-1", beside="11"),
    _rule("EC_CEDULA", stdnum("ec.ci"), "cedula", beside="10 9-1"),
    _rule("DO_CEDULA", stdnum("do.cedula"), "cedula", always="3-7-1", beside="11"),
    _rule("CO_NIT", stdnum("co.nit"), "cedula", beside="3.3.3-1 9-1 10"),
    _rule("US_NPI", check.npi, "npi", always="4-3-3", beside="10"),
    _rule("BR_PIS", check.varied, "pis", beside="3~5~2~1 11"),
    _rule("BR_VOTER", check.varied, "titulo", beside="4~4~4 12"),
    _rule("BR_CNS", check.varied, "cns", beside="15 3~4~4~4"),
    _rule("BR_CTPS", check.varied, "ctps", beside="7~5 7~4 7~3 7"),
)

LOOSE = {
    "card": Loose("CREDIT_CARD", 12, 19, groups=19),
    "account": Loose("ACCOUNT_NUMBER", 5, 18),
    "member": Loose("ACCOUNT_NUMBER", 5, 16),
    "ssn": Loose("US_SSN", 9, 9),
    "cpf": Loose("CPF", 10, 11),
    "cnpj": Loose("CNPJ", 14, 14),
    "licence": Loose("DRIVER_LICENSE", 7, 14),
    "rg": Loose("BR_RG", 6, 10),
    "registration": Loose("REGISTRATION_NUMBER", 5, 11),
    "lawyer": Loose("REGISTRATION_NUMBER", 4, 7),
    "record": Loose("MEDICAL_RECORD", 4, 12),
    "passport": Loose("PASSPORT", 6, 9),
}
