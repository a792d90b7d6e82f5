from hf_mwp.runtime.augmentation.clock_writing import Interval, write_chinese_interval, write_english_interval


class FirstChoices:
    """Chooses the first of several, and numbers that make each condition false."""

    def choice(self, choices):
        return choices[0]

    def random(self):
        return 0.9


def test_times_before_and_after_noon_are_named():
    assert write_chinese_interval(Interval(9 * 60, 5 * 60), FirstChoices()) == ("上午9:00", "下午2:00")
    assert write_english_interval(Interval(9 * 60, 5 * 60), FirstChoices()) == ("9 am", "2 pm")


def test_times_on_the_next_day():
    assert write_chinese_interval(Interval(22 * 60 + 30, 8 * 60), FirstChoices()) == ("晚上10:30", "第二天上午6:30")
    assert write_english_interval(Interval(22 * 60 + 30, 8 * 60), FirstChoices()) == ("10:30 pm", "6:30 am")
