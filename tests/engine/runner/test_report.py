"""Reports in journals and exports keep the names that they were written under."""

from engine.runner.report import Report, TestResult

STORED = {
    "verdict": "fail",
    "mode": "split",
    "why": "assert 1 == 2",
    "tests": [{"id": "test_a", "outcome": "failed", "why": "assert 1 == 2", "seconds": 0.1}],
    "lamps": {"files": "None is visible.", "network": "None."},
    "seconds": 0.5,
    "peak_mib": None,
    "output": "hi\n",
    "output_bytes": 3,
    "weak": ["network"],
    "passed": 0,
    "failed": 1,
}


def test_a_stored_report_is_read() -> None:
    report = Report.from_dict(STORED)
    assert report.isolation == {"files": "None is visible.", "network": "None."}
    assert report.tests == (TestResult("test_a", "failed", "assert 1 == 2", 0.1),)
    assert report.weak == ("network",)


def test_a_report_is_stored_under_the_same_names() -> None:
    report = Report.from_dict(STORED)
    fields = report.to_dict()
    assert fields["lamps"] == report.isolation
    assert "isolation" not in fields
    assert Report.from_dict(fields) == report
