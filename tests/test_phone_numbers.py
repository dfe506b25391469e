"""Phones in every form in which people type them."""

import pytest

from appointments import phones

ANA = "+584120000001"


@pytest.mark.parametrize(
    "typed",
    [
        "0412-0000001",
        "412 0000001",
        "584120000001",
        "+58 (0)412 0000001",
        "+5804120000001",
        "5804120000001",
        "00584120000001",
        "+58 412-000.00.01",
        "0412.000.00.01",
        "(0412) 000 00 01",
        "０４１２－００００００１",
        "＋５８４１２００００００１",
        "٠٤١٢٠٠٠٠٠٠١",
        "0412–0000001",
        "0412—0000001",
        "0412‑0000001",
        "0412−0000001",
        "0412\u00a0000\u202f0001",
        "\u200e0412\u200b0000001\ufeff",
        "  0412 0000001 (mamá)",
        "tel: 0412-0000001",
        "4120000001.0",
        '="04120000001"',
    ],
)
def test_every_way_of_typing_a_number_is_dialled_alike(typed):
    phone = phones.normalise(typed)
    assert (phone.e164, phone.is_mobile, phone.notes) == (ANA, True, ())


@pytest.mark.parametrize("prefix", ["412", "414", "416", "422", "424", "426"])
def test_each_mobile_prefix_is_known(prefix):
    phone = phones.normalise(f"0{prefix}-0000006")
    assert (phone.e164, phone.is_mobile) == (f"+58{prefix}0000006", True)


@pytest.mark.parametrize("between", [" / ", "/", "; ", ", ", " y ", " o ", " | ", "\n", " "])
def test_of_two_numbers_in_one_cell_the_mobile_is_taken_and_told(between):
    for first, second in [("0412-0000001", "0212-5551234"), ("0212-5551234", "0412-0000001")]:
        phone = phones.normalise(first + between + second)
        assert phone.e164 == ANA
        assert phone.notes == ("Hay varios teléfonos: se tomó +584120000001.",)


def test_a_landline_is_kept_and_known_as_such():
    phone = phones.normalise("0212-5551234")
    assert (phone.e164, phone.is_mobile) == ("+582125551234", False)
    assert phone.notes == ("+582125551234 es un teléfono fijo: no recibirá WhatsApp.",)


def test_an_extension_is_no_part_of_the_number():
    assert phones.normalise("0212-5551234 ext. 12").e164 == "+582125551234"


@pytest.mark.parametrize(
    ("typed", "e164"),
    [
        ("+57 300 1234567", "+573001234567"),
        ("+34 612 345 678", "+34612345678"),
        ("+1 305 555 0123", "+13055550123"),
    ],
)
def test_a_foreign_number_with_a_plus_is_taken(typed, e164):
    phone = phones.normalise(typed)
    assert (phone.e164, phone.is_mobile) == (e164, True)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "Falta el teléfono."),
        ("no tiene", "«no tiene» no es un teléfono."),
        ("555-1234", "A «555-1234» le falta el código de área; por ejemplo, 0412 o 0212."),
        (
            "0414-00000",
            "«0414-00000» no es un teléfono de Venezuela (once cifras, como 0412-0000001) "
            "ni uno de otro país con + delante.",
        ),
        (
            "4,12E+09",
            "«4,12E+09» es un número que la hoja de cálculo acortó: dé a esa columna formato de texto.",
        ),
    ],
)
def test_what_nobody_could_dial_is_refused_with_a_sentence(typed, sentence):
    with pytest.raises(phones.NotAPhone) as refused:
        phones.normalise(typed)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("typed", ["0412-00000012", "+58 412", "0499-0000001", "++", "\0", "9" * 500])
def test_nonsense_is_never_taken_for_a_number(typed):
    with pytest.raises(phones.NotAPhone):
        phones.normalise(typed)
