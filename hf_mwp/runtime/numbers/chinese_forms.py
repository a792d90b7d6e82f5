"""Forms of numbers in Chinese texts: those of shares and amounts, and numerals before units."""

import re

from .chinese_amounts import CHINESE_AMOUNTS
from .chinese_misprints import CHINESE_MISPRINTS
from .chinese_money import CHINESE_MONEY, SHORTENED_MONEY
from .chinese_numbers import CHARACTER, CHARACTERS, COUNTER, NUMERAL, START, UNIT, number_of
from .chinese_scales import CHINESE_SCALES
from .chinese_shares import CHINESE_SHARES
from .chinese_times import CHINESE_TIMES
from .number_form import CONTEXT, FormMatch, NumberForm, no_number, number_match, text_around, text_before


def _numeral(match: re.Match[str], text: str) -> FormMatch | None:
    """两个, 五盒, 三十页."""
    value = number_of(match["number"])
    if value is None:
        return None
    return number_match(match, value, group="number")


def _age(match: re.Match[str], text: str) -> FormMatch | None:
    """爷爷今年七十二, in a text about ages."""
    value = number_of(match["number"])
    if value is None or not re.search("岁|年龄|年纪", text_around(match, text)):
        return None
    return number_match(match, value, unit="岁")


def _adults_or_children(match: re.Match[str], text: str) -> FormMatch:
    """两大一小: two adults and a child."""
    group = "number" if match["number"] else "children"
    return number_match(match, number_of(match[group]), group=group)


def _counted_pair(match: re.Match[str], text: str) -> FormMatch:
    """买了俩西瓜: 俩 is 两个. 哥仨 are three; 兄弟俩 refers to two that the text has named."""
    return number_match(match, {"俩": 2, "仨": 3}[match[0]], unit="个")


def _single_year(match: re.Match[str], text: str) -> FormMatch | None:
    """2024年运动会: no number in a text without other years, unless the question is about years, ages or dates."""
    if len(_YEAR.findall(text_around(match, text))) > 1:
        return None
    rest = text[match.end() + 1 :][-CONTEXT:]
    question = re.split(f"[{_CLAUSE_ENDS}]", rest.rstrip(_CLAUSE_ENDS))[-1]
    if re.search("[年岁天月日号]|多大", question):
        return None
    return no_number(match, text)


def _floor_of_home(match: re.Match[str], text: str) -> FormMatch | None:
    """张阿姨家住5楼, in a text without stairs and other floors."""
    if _STAIRS.search(text_around(match, text).replace(match[0], "", 1)):
        return None
    return no_number(match, text)


_YEAR = re.compile(r"(?<![\d.．])(?:19|20)\d\d(?=年(?![前后]))")
_STAIRS = re.compile("[楼层阶级梯]")

# Words in which a numeral before a unit is no number of the problem: ordinals (第三天), references to things that the
# text has named before (这两个, 甲乙两人, 相邻两棵, 两车), names (三角形, 百位), numbers themselves (两个数的和).
_NOT_BEFORE = "(?<![第周这那前上下头每甲乙丙丁师徒邻A-Za-z])(?<!(?<![以之然])后)(?<!星期)"
_TENS = "[二三四五六七八九]?十[一二三四五六七八九]?"
_SMALL = "[两一二三四五六七八九]"
_REFERENCE = "[两二](?=[人车种题组座艘队位头幢栋站轮夜]|季度|同学|朋友|学生|工人)"
_NO_COUNT_OF_NUMBERS = "(?!个(?:不同的?|连续的?|相邻的?)?(?:自然数|数|整数|偶数|奇数|质数|分数|小数|加数|因数))"
_NOT_AFTER = f"{_NO_COUNT_OF_NUMBERS}(?!角(?:形|板|尺|星|茴|洲|梅)|边形|面体|人称|位数|年级|年[(（]|月份|元[一二]次)"
_CLAUSE_ENDS = "，,。．；;？?！!"
_QUESTION_WORD = re.compile("多少|几")
_SIZE = "(?:元|千克|公斤|克|吨|毫升|升|平方米|平方分米|平方厘米|千米|公里|分米|厘米|毫米|米|小时|个小时|分钟|秒|岁)"


_WAY_BETWEEN_FLOORS = re.compile(
    "从[一二三四五六七八九十]{1,3}[楼层][^，,。]{0,4}[到至][一二三四五六七八九十]{1,3}[楼层]"
)


def _floor(match: re.Match[str], text: str) -> FormMatch | None:
    """从一楼爬到三楼, in a text about the way between floors."""
    if not _WAY_BETWEEN_FLOORS.search(text_around(match, text)):
        return None
    return _numeral(match, text)


def _ordinal(match: re.Match[str], text: str) -> FormMatch | None:
    """第3天看了25页. It may be a number of the problem in a question: 第6天应从第多少页看起."""
    context_start = max(0, match.start() - CONTEXT)
    clause_start = max(text.rfind(mark, context_start, match.start()) for mark in _CLAUSE_ENDS)
    rest_of_clause = re.split(f"[{_CLAUSE_ENDS}]", text[match.end() : match.end() + CONTEXT])[0]
    if _QUESTION_WORD.search(text, max(0, clause_start), match.end() + len(rest_of_clause)):
        return None
    return no_number(match, text)


# Words whose numeral is no number of a problem: grades and classes, things, places, holidays.
_NAMES = (
    "[一二三四五六七八九]年级(?:[一二三四五六七八九]班)?|三轮车|千纸鹤|千层饼|千斤顶|千里马|百合|百科|百货|百叶窗|百米(?=赛跑|冲刺|跑)|"
    "万花筒|万年历|八音盒|八宝粥|八仙桌|九连环|七巧板|七星|五角星|五星|五线谱|五彩|五金|五花肉|四合院|四季|四川|三明治|三峡|三国|三亚|三文鱼|"
    "三好学生|三脚架|三角|二胡|二维码|十字(?=路口|架|绣|形)|六一(?=儿童|节|那)|五一(?=节|劳动|假|长|黄金|期间|那)|十一(?=长假|黄金周|假期|期间)|"
    "三八(?=节|妇女)|九寨沟"
)
_WHEELS = re.compile("轮子|车轮|个轮")


def _name(match: re.Match[str], text: str) -> FormMatch | None:
    """三轮车有五辆. The number of wheels counts if the problem is about wheels."""
    if match[0] == "三轮车" and _WHEELS.search(text):
        return None
    return no_number(match, text)


def _numeral_among_digits(match: re.Match[str], text: str) -> FormMatch | None:
    """两个 in a text that has counted the same before: 小明有3个苹果，小红有两个苹果."""
    noun = re.escape(text[match.end() : match.end() + 1])
    if not re.search(rf"\d\s?{match['unit']}{noun}", text_before(match, text)):
        return None
    return _numeral(match, text)


def _ratio(match: re.Match[str], text: str) -> FormMatch | None:
    """三比二: two numbers, and a colon between them."""
    value = number_of(match["number"])
    if value is None or not _RATIO.search(text_around(match, text)):
        return None
    unit = ""
    if match[0].endswith("比"):
        unit = ":"
    return number_match(match, value, unit=unit)


_RATIO = re.compile(r"比是|比为|的比|之比|比例|比分|[按以]\s?[一二三四五六七八九十]{1,2}比")
_RATIO_NUMERAL = "[一二两三四五六七八九十]{1,2}"


CHINESE_FORMS = (
    *CHINESE_SHARES,
    *SHORTENED_MONEY,
    *CHINESE_SCALES,
    *CHINESE_AMOUNTS,
    *CHINESE_TIMES,
    *CHINESE_MONEY,
    *CHINESE_MISPRINTS,
    NumberForm(
        "decimals in numerals",
        re.compile(
            rf"{START}(?P<number>[零一二两三四五六七八九十百]{{1,6}}点[零〇一二三四五六七八九]{{1,6}})(?={_SIZE})"
        ),
        _numeral,
        "点",
    ),
    NumberForm(
        "numerals of two characters, or before sizes",
        re.compile(
            rf"{START}(?<!万){_NOT_BEFORE}(?P<number>(?!十分(?!钟)|[十百千]+位)(?:(?=.{{0,3}}[十百千廿卅])[一二两三四五六七八九十百廿卅]{CHARACTER}{{1,8}}"
            rf"(?={UNIT}|(?<!两)分(?![之钟米给])|[度下字里])|(?:[二三四五六七八九]|两(?=[千公厘分毫]米|[吨升元小])|十)(?={_SIZE}))){_NOT_AFTER}"
        ),
        _numeral,
    ),
    NumberForm(
        "numerals before the counter of an earlier number",
        re.compile(
            rf"(?<=[有买吃用送给拿卖借放装得取了])(?P<number>[两三四五六七八九])(?P<unit>{COUNTER}){_NOT_AFTER}"
        ),
        _numeral_among_digits,
    ),
    NumberForm(
        "ratios in numerals",
        re.compile(rf"{START}(?P<number>{_RATIO_NUMERAL})比(?={_RATIO_NUMERAL}(?![多少大小高低{CHARACTERS}]))"),
        _ratio,
        "比",
    ),
    NumberForm(
        "last numbers of ratios in numerals",
        re.compile(rf"(?<=[一二两三四五六七八九十]比)(?P<number>{_RATIO_NUMERAL})(?![多少大小高低比{CHARACTERS}])"),
        _ratio,
        "比",
    ),
    NumberForm(
        "times of day in numerals",
        re.compile(
            rf"(?<=[上下中正]午|早上|晚上|早晨|傍晚|凌晨)(?P<number>[一二两三四五六七八九十]{{1,3}})(?=点钟?(?![半{CHARACTERS}])|时(?![间候]))"
        ),
        _numeral,
        "点 时",
    ),
    NumberForm(
        "clock times in numerals",
        re.compile(rf"{START}(?P<number>[两三四五六七八九十]{{1,3}})(?=点钟)"),
        _numeral,
        "点钟",
    ),
    NumberForm("year", _YEAR, _single_year, "年", at_digits=True),
    NumberForm(
        "floor of a home",
        re.compile(r"(?:(?<=住)|(?<=住在)|(?<=家在))\d{1,2}[楼层]"),
        _floor_of_home,
        "楼 层",
        at_digits=True,
    ),
    NumberForm("grades", re.compile(r"(?<![\d.．])[1-9]、[1-9]年级"), no_number, "年级"),
    NumberForm("ordinals", re.compile(r"第\d(?=[天周月年季组批堆]|次(?!相遇))"), _ordinal, "第"),
    NumberForm("names with numerals", re.compile(rf"(?<![零一二两三四五六七八九十百千万亿\d])(?:{_NAMES})"), _name),
    NumberForm(
        "numbered buildings and lines",
        re.compile(
            r"(?<![\d.．-])\d{1,3}(?=号(?:楼|线|店|门|房|院|厅|车厢|教室)|路(?:公交|公共|汽车|车)|单元(?![测检考格]))"
            r"|(?:(?<=单元)|(?<=号楼)|(?<=[一二三四五六七八九十\d]楼))[1-9]\d{2,3}(?=[室房号，,。；;]|\Z)"
        ),
        no_number,
        "号 路 单元 楼",
    ),
    NumberForm(
        "names",
        re.compile(
            r"(?<![A-Za-z\d])(?:[GDKTZC]\d{1,4}(?=次|列车)|[Mm][Pp][34]|H2O|CO2|A[34](?=纸|大小|打印))"
            r"|第\d{1,3}(?=届)|(?<=[一二三四五六])[(（]\d{1,2}[)）](?=班)|\d{1,3}(?=号(?:选手|运动员|队员|同学|座位))"
            r"|(?<![A-Za-z\d])[45](?=G(?:套餐|网|手机|卡|时代))|(?<=iPhone)\s?\d{1,2}|4(?=S店)|(?<!\d)9[258](?=号(?:汽|柴)?油)"
            r"|(?<=双)1[12](?!\d)|(?<!\d)618(?=大促|活动|[买期打购当那])|(?<!\d)520(?=那天|当天)|(?<!\d)[6-9]0(?=后)|(?<!\d)1[3-9]\d{9}(?!\d)"
        ),
        no_number,
    ),
)
"""Forms that are read in each Chinese text, in the order in which they are tried."""


CHINESE_COUNTS = (
    NumberForm(
        "first and last days",
        re.compile(
            rf"(?<=[前后])(?P<number>[两三四五六七八九]|{_TENS})"
            r"(?=(?:天|个月|个?小时|分钟|周|次|年)(?:[里内]?(?:平均)?每|小?测|考试|平均\d))"
        ),
        _numeral,
        "前 后",
    ),
    NumberForm(
        "days of a week",
        re.compile("(?:(?<=[一每]周)|(?<=[一每]星期))(?P<number>[二三四五六七])(?=天)"),
        _numeral,
        "周 星期",
    ),
    NumberForm(
        "floors",
        re.compile(r"(?:(?<=从)|(?<=[到至]))(?P<number>[一二三四五六七八九十]{1,3})(?=[楼层])"),
        _floor,
        "楼 层",
    ),
    NumberForm(
        "subjects",
        re.compile("(?P<number>[两三四五六七])(?=门(?:课|功课|学科|成绩|平均|总分|加起来|一共))"),
        _numeral,
        "门",
    ),
    NumberForm(
        "俩",
        re.compile(
            r"(?:(?<=[有买吃用送给拿卖借了])(?P<number>[俩仨])|(?<=[哥姐妹弟])(?P<siblings>仨)|[俩仨](?=个?(?:钟头|小时|月|星期|礼拜)))(?!人|一(?!样|模)|[他她它们])"
        ),
        _counted_pair,
        "俩 仨",
    ),
    NumberForm(
        "families and groups",
        re.compile(r"(?:(?<=一家)(?=.口)|(?=.口之家)|(?<=[们组])(?=仨))(?P<number>[三四五六七八仨])"),
        _numeral,
        "口 仨",
    ),
    NumberForm(
        "adults and children",
        re.compile(rf"(?P<number>{_SMALL})(?=大{_SMALL}小(?!时))|(?<={_SMALL}大)(?P<children>{_SMALL})(?=小(?!时))"),
        _adults_or_children,
        "大",
    ),
    NumberForm(
        "hundred kilometres",
        re.compile(
            r"(?<![一二两三四五六七八九几数上])(?P<number>百)(?=公里[^，,。]{0,4}(?:油耗|耗油|耗电|电耗|能耗|烧|用))"
        ),
        _numeral,
        "百公里",
    ),
    NumberForm(
        "ages in numerals",
        re.compile(
            rf"(?:(?<=今年)|(?<=爸爸)|(?<=妈妈)|(?<=爷爷)|(?<=奶奶)|(?<=老师)|(?<=孙子)|(?<=孙女)|(?<=儿子)|(?<=女儿))(?P<number>(?=.{{0,1}}十){NUMERAL})(?=[，,。；;了]|\Z)"
        ),
        _age,
        "十",
    ),
    NumberForm(
        "numerals of ten thousands",
        re.compile(rf"{START}(?P<number>{NUMERAL}万)(?=[，,。；;？?！!]|\Z)"),
        _numeral,
        "万",
    ),
    NumberForm(
        "numerals at the end of a clause",
        re.compile(
            rf"{START}{_NOT_BEFORE}(?<![万初期年月日号点时分比之乘除双])"
            rf"(?P<number>(?:[一二两三四五六七八九][十百千](?:{CHARACTER}){{0,5}}|十[一二三四五六七八九]))"
            rf"(?=[，。；,;？?！!\s]|\Z|打[\d一二三四五六七八九])"
        ),
        _numeral,
        "十 百 千",
    ),
    NumberForm(
        "numerals before units",
        re.compile(
            rf"{START}{_NOT_BEFORE}(?P<number>(?!{_REFERENCE}|两两|一(?!{CHARACTER})|十分(?!钟)|[十百千]+位|[零万])(?:{CHARACTER}|(?<!\d)(?<!\s)万){{1,16}}"
            rf"(?:点[零〇一二三四五六七八九]{{1,9}})?)(?={UNIT}){_NOT_AFTER}"
        ),
        _numeral,
    ),
)
"""Numerals before unit words (两个, 五盒) in texts with digits."""
