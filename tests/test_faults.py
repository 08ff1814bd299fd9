import re
from pathlib import Path

from tools.fuzz import main as fuzz

ROOT = Path(__file__).parent.parent


def test_each_fault_in_the_list_has_a_test_that_is_there():
    rows = re.findall(r"^\| (?!fault|-)(.+?) \| (.+?) \| `(\w+)` \|$", (ROOT / "docs" / "faults.md").read_text(), re.M)
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(rows) >= 60
    assert [name for _, _, name in rows if f"def {name}(" not in tests] == []


def test_random_input_ends_in_no_error_that_is_not_ours(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fuzz.py", "--seconds", "60", "--rounds", "1400"])
    assert fuzz() == 0
    assert '"failed": 0' in capsys.readouterr().out
