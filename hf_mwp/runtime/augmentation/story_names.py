"""Names of the people in generated problems."""

STORY_NAMES = {
    "en": (
        "Ann", "Ben", "Carla", "David", "Emma", "Frank", "Grace", "Henry", "Ivy", "Jack", "Kate", "Liam",
        "Maria", "Noah",
    ),
    "zh": (
        "小明", "小红", "小华", "小丽", "小刚", "小芳", "李老师", "王老师", "妈妈", "爸爸", "张阿姨", "刘叔叔",
    ),
}  # fmt: skip
"""Names for each language."""
