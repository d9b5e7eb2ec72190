"""Do the candidates differ enough to be worth their number?"""

_COOL = 0.6  # from here on, equal answers are no fault of the temperature
_MORE_HEAT = 0.8


def offer_of_heat(candidates: int, largest_group: int, temperature: float) -> str:
    """A sentence that offers a higher temperature where a low one made the answers alike; empty otherwise.

    ``candidates`` were compared, of which ``largest_group`` are the same code. At a high temperature equal answers
    are a good sign (the model is sure), so nothing is said.
    """
    if candidates < 2 or temperature >= _COOL or largest_group <= candidates / 2:
        return ""
    which = "All" if largest_group == candidates else f"{largest_group} of"
    if temperature == 0:
        why = ", since temperature 0 always takes the likeliest token"
    else:
        why = f" at temperature {temperature:g}"
    return f"{which} {candidates} candidates are the same code{why}; try {_MORE_HEAT} for more variety."
