"""A number with its noun, for messages: "1 fault", "4 faults"."""


def counted(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
