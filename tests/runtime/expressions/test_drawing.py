from hf_mwp.runtime.expressions import Expression, draw


def test_draw():
    assert draw(Expression.from_infix("(70+6)/(N0-1)*2")) == (
        "*\n├── /\n│   ├── +\n│   │   ├── 70\n│   │   └── 6\n│   └── -\n│       ├── N0\n│       └── 1\n└── 2"
    )
    assert draw(Expression("1(3/4)")) == "1(3/4)"


def test_draw_deep():
    assert len(draw(Expression.from_infix("1" + "-(1" * 90 + ")" * 90)).splitlines()) == 181
