"""A share of the processor, as control groups of either version write it down."""

import pytest
import torch

from kernels import quota, thread_pool


@pytest.fixture
def groups(monkeypatch, tmp_path):
    """Files of control groups, by path; ``membership``: what the kernel says this process is in."""
    monkeypatch.setattr(quota, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(quota, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(quota, "bound", lambda: 16)

    def write(membership, **files):
        (tmp_path / "membership").write_text(membership)
        for path, text in files.items():
            file = tmp_path / "cgroup" / path.replace("__", "/").replace("_dot_", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")

    return write


V1 = "4:memory:/x\n1:cpu,cpuacct:/docker/abc\n0::/"


@pytest.mark.parametrize(
    ("membership", "files", "processors"),
    [
        ("0::/", {"cpu_dot_max": "200000 100000"}, 2),  # a container that has its own group as the root
        ("0::/", {"cpu_dot_max": "max 100000"}, 16),
        ("0::/", {"cpu_dot_max": "150000 100000"}, 2),  # one and a half: the second works half of the time
        ("0::/", {"cpu_dot_max": "50000 100000"}, 1),
        ("0::/", {"cpu_dot_max": "9900000 100000"}, 16),  # more than there are
        ("0::/a/b", {"a__b__cpu_dot_max": "400000 100000", "a__cpu_dot_max": "300000 100000"}, 3),
        ("0::/a/b", {"a__b__cpu_dot_max": "400000 100000", "a__cpu_dot_max": "max 100000"}, 4),
        ("0::/a", {"b__cpu_dot_max": "100000 100000"}, 16),  # somebody else's
        (V1, {"cpu,cpuacct__docker__abc__cpu.cfs_quota_us": "250000",
              "cpu,cpuacct__docker__abc__cpu.cfs_period_us": "50000"}, 5),
        (V1, {"cpu__cpu.cfs_quota_us": "300000", "cpu__cpu.cfs_period_us": "100000"}, 3),
        (V1, {"cpu__cpu.cfs_quota_us": "-1", "cpu__cpu.cfs_period_us": "100000"}, 16),
        (V1, {"cpu__cpu.cfs_quota_us": "100000", "cpu__cpu.cfs_period_us": "0"}, 16),
        (V1, {"unified__cpu_dot_max": "200000 100000"}, 2),  # both versions side by side
        ("", {}, 16),
        ("garbage\n0::", {"cpu_dot_max": "what"}, 16),
    ],
)  # fmt: skip
def test_processors(groups, membership, files, processors):
    groups(membership, **files)
    assert quota.processors() == processors


def test_without_control_groups(monkeypatch, tmp_path):
    monkeypatch.setattr(quota, "GROUPS", tmp_path / "none")
    monkeypatch.setattr(quota, "MEMBERSHIP", tmp_path / "none")
    assert quota.share() is None
    assert quota.processors() == quota.bound() >= 1


@pytest.mark.parametrize(
    ("threads", "share", "helpers"), [(8, 16, 7), (8, 2, 1), (8, 1, 0), (1, 16, 0), (128, 128, thread_pool.MOST - 1)]
)
def test_helpers_are_bounded_by_threads_share_and_use(monkeypatch, threads, share, helpers):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(quota, "processors", lambda: share)
    assert thread_pool.helpers() == helpers
