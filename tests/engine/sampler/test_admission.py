"""Who may join the batch: few in the first wave if that was wanted, and never more than the memory holds."""

from engine.sampler.admission import Admission
from engine.sampler.width import Widths
from tests.engine.sampler.running import new_rows


def rows(*numbers):
    return new_rows(numbers, [1, 2, 3])


def test_all_at_once():
    admission = Admission(range(1, 5), Widths(4, 4))
    assert admission.admit([]) == [1, 2, 3, 4]
    assert admission.admit(rows(1, 2, 3, 4)) == []


def test_wide_only_when_the_first_wave_is_over():
    admission = Admission(range(1, 9), Widths(2, 4))
    assert admission.admit([]) == [1, 2]
    assert admission.admit(rows(1, 2)) == []
    assert admission.admit(rows(2)) == [3]  # one of the first wave still goes on
    assert admission.admit(rows(3)) == [4, 5, 6]


def test_what_the_memory_does_not_hold_waits_in_front():
    admission = Admission(range(1, 7), Widths(4, 4))
    admission.admit([])
    admission.send_back(rows(1, 2, 3, 4), most=2)
    assert admission.admit([]) == [1, 2]
    assert admission.admit(rows(1, 2)) == []
    admission.add([7, 8], Widths(8, 8))  # more were asked for; the memory is what it was
    assert admission.admit(rows(1, 2)) == []
    assert admission.admit([]) == [3, 4]
    assert admission.waiting == [5, 6, 7, 8]


def test_more_at_the_width_chosen_anew():
    admission = Admission([1, 2], Widths(2, 2))
    admission.admit([])
    admission.add([3, 4, 5], Widths(5, 5))
    assert admission.admit(rows(1, 2)) == [3, 4, 5]


def test_one_that_waits_can_be_dropped():
    admission = Admission([1, 2, 3], Widths(1, 1))
    admission.admit([])
    assert admission.drop(2)
    assert not admission.drop(2)
    assert not admission.drop(1)
    assert admission.waiting == [3]
