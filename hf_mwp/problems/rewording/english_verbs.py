"""Forms of verbs that are common in English word problems."""

_IRREGULAR = dict(
    verb.split(":")
    for verb in """
begin:began break:broke bring:brought build:built buy:bought catch:caught cost:cost cut:cut dig:dug do:did draw:drew
drink:drank drive:drove eat:ate feed:fed find:found fly:flew get:got give:gave go:went grow:grew have:had hold:held
keep:kept lay:laid leave:left lend:lent lose:lost make:made pay:paid put:put read:read ride:rode run:ran see:saw
sell:sold send:sent set:set sing:sang spend:spent swim:swam take:took throw:threw weigh:weighed win:won write:wrote
""".split()
)

_REGULAR = """
add answer arrange ask assemble attend attract bake blow borrow bounce carry change charge check clean collect color
complete contain consume cook count cover create crack decorate deliver deposit discard discover distribute divide
donate download earn empty exercise exchange fill finish fix fold follow gather hand harvest haul help hike hire
invite jump kick knit learn lift like load mail manage measure memorize miss mow need notice observe offer open order
own pack paint pass peel pick pile place plan plant play pledge pour practice prepare print produce provide purchase
raise reach receive recycle remove rent repair require return save score select serve sew share ship shovel skate
solve sort split stack stamp start stay stop store study taste test throw toss trade transfer travel trim try type
unload use visit volunteer vote walk want wash watch water wear work wrap
""".split()

_DOUBLED = frozenset({"plan", "ship", "stop", "trim", "wrap"})


def _past(base: str) -> str:
    if base in _IRREGULAR:
        return _IRREGULAR[base]
    if base in _DOUBLED:
        return f"{base}{base[-1]}ed"
    if base[-1] == "y" and base[-2] not in "aeiou":
        return f"{base[:-1]}ied"
    return f"{base}d" if base[-1] == "e" else f"{base}ed"


def _third(base: str) -> str:
    if base == "have":
        return "has"
    if base[-1] == "y" and base[-2] not in "aeiou":
        return f"{base[:-1]}ies"
    return f"{base}es" if base.endswith(("s", "x", "ch", "sh", "o")) else f"{base}s"


BASES = frozenset(_IRREGULAR).union(_REGULAR) - {"do"}

AUXILIARIES = {_past(base): ("did", base) for base in BASES}
"""Mapping from verb forms to the auxiliary and base form in a question: `"bought"` -> `("did", "buy")`."""
AUXILIARIES |= {base: ("do", base) for base in BASES if _past(base) != base}
AUXILIARIES |= {_third(base): ("does", base) for base in BASES}

INFLECTED = {(auxiliary, base): form for form, (auxiliary, base) in AUXILIARIES.items()}
"""Inverse of `AUXILIARIES`: `("did", "buy")` -> `"bought"`."""

MODALS = frozenset({"will", "would", "can", "could", "should", "must"})
BE = frozenset({"is", "are", "was", "were"})
