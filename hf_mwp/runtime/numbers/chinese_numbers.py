"""Parts of patterns for Chinese numbers: digits, numerals and units."""

import re
from fractions import Fraction

from hf_mwp.runtime.expressions.numbers import to_half_width

from .chinese_numerals import integer_of


CHARACTERS = "零〇○一二两三四五六七八九十百千廿卅"
# 千米 and 千克 are units, and so is 两 in 二两.
CHARACTER = (
    rf"(?:[{CHARACTERS.replace('千', '').replace('两', '')}]|千(?![米克瓦升])"
    rf"|(?<![{CHARACTERS.replace('两', '')}])两|两(?=[百千万亿]))"
)
NUMERAL = rf"{CHARACTER}{{1,16}}"
DIGITS = r"\d{1,12}(?:[.．]\d{1,9})?"
NUMBER = rf"(?:{DIGITS}|{NUMERAL}(?:点[零〇一二三四五六七八九]{{1,9}})?)"
START = rf"(?<![\d.．{CHARACTERS}])"  # not inside of another number
DECIMALS = str.maketrans("零〇一二三四五六七八九", "00123456789")
MINUTES_OF_PARTS = {"半": Fraction(30), "一刻": Fraction(15), "三刻": Fraction(45)}
"""Minutes of the parts of an hour in clock times: 8点半, 8点三刻."""
TIME_WORDS = re.compile(
    "上午|下午|早上|晚上|中午|早晨|傍晚|凌晨|昨晚|今晚|当晚|今早|时刻|开始|结束|出发|到达|开往|开车|开到|上学|放学|放映|起床"
    r"|出门|到家|到站|到校|到学校|到公司|到单位|散场|上车|下车|开门|关门|起飞|降落|营业|睡觉|上课|下课|上班|下班|第二天|次日"
    r"|\d[:：]\d\d\s?(?:[到至~～—-]\s?\d{1,2}[:：]\d\d|[开到睡起]|发车|进站|入睡)"
    r"|[\d一二两三四五六七八九十]点钟?(?:半|[一三]刻|\d{1,2}分?|[零一二三四五六七八九十]{1,3}分?)?(?:[到至睡起]|才睡|就睡|入睡)"
)
"""Words and times that come with clock times: 上午, 出发, 开门."""
_CAPITALS = str.maketrans("壹贰貳叁參肆伍陆陸柒捌玖拾佰仟萬億○", "一二二三三四五六六七八九十百千万亿〇")

# Units of counts, sizes and times, the longer ones first.
COUNTERS = (
    "个 只 本 支 枝 张 条 辆 棵 株 块 朵 盒 根 袋 把 件 人 名 位 筐 箱 瓶 桶 包 页 行 排 层 间 座 架 台 头 匹 双 "
    "套 副 组 次 遍 圈 堆 束 串 杯 碗 盘 盆 罐 听 节 段 户 场 份 颗 粒 片 面 幅 封 篇 句 题 道 步 壶 篮 捆 枚 种 "
    "艘 滴 车 对 家人 人次 小组 班级 趟 幢 栋 扇 盏 碟 集 桌 床 筒 格 锅 勺 口人 "
    "晚 夜 顿 餐 平 节课 课时 堂课 门课 门功课 轮比赛 局 回合 发 环 章 尺 站 板 票 "
    "钟头 公分 季度 学期 礼拜 度电 英寸 客人 朋友 同学 工人 男生 女生 学生 罐 级台阶"
)
MEASURES = (
    "公顷 平方千米 平方米 平方分米 平方厘米 立方米 立方分米 立方厘米 千米 公里 分米 厘米 毫米 米 千克 公斤 "
    "毫克 克 吨 斤 毫升 升 元 角 小时 分钟 秒钟 秒 天 年 个月 星期 岁 亩 两"
)
COUNTER = "|".join(sorted(COUNTERS.split(), key=len, reverse=True))
# In 一、二两个小组, 两 is no weight.
MEASURE = "|".join(sorted(MEASURES.split(), key=len, reverse=True)).replace("两", "两(?![个条天人组队次位班种边车年])")
UNIT = f"(?:{MEASURE}|{COUNTER}|块钱|钱)"


def number_of(written: str) -> Fraction | None:
    """Return the value of digits or of a Chinese numeral, or `None` if it is not valid."""
    written = to_half_width(written)
    if written[:1].isdecimal():
        return Fraction(written)
    whole, point, decimals = written.translate(_CAPITALS).replace("廿", "二十").replace("卅", "三十").partition("点")
    value = integer_of(whole)
    if value is None:
        return None
    if not point:
        return Fraction(value)
    return value + Fraction(int(decimals.translate(DECIMALS)), 10 ** len(decimals))
