"""Numbers with their nouns in messages."""


def counted(number: int, noun: str) -> str:
    """`1 trial`, `2 trials`, `10,000 rounds`.

    Args:
        number: of things.
        noun: for one of them; its plural ends in s.
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
