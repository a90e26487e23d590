"""When numbers cannot answer."""


class NotTestable(ValueError):  # noqa: N818 - the word of the verdict
    """Too little, or nothing that varies, to judge by. The message says what is missing, for a person to read."""
