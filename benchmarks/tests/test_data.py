"""Data sets by name: what is generated is what its rule says, what is in a folder is what its files say."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from bench_support import published_data

from accel_oct import frontier
from accel_oct.errors import InvalidInputError
from accel_oct_bench.data import GENERATED, RAW_FILES, EncodedData, Registry, encoded_raw, fingerprint

# ---------------------------------------------------------------- generated


def as_set(data: EncodedData) -> list[tuple[bytes, object]]:
    """Rows with their labels, in any order."""
    return sorted(zip(map(bytes, np.packbits(data.X, axis=1)), data.y.tolist(), strict=True))


def monk_points() -> list[tuple[int, ...]]:
    return list(product((1, 2, 3), (1, 2, 3), (1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 2)))


def monk_bits(point: tuple[int, ...]) -> list[bool]:
    a, b, c, d, e, f = point
    return [
        *(a == v for v in (1, 2, 3)), *(b == v for v in (1, 2, 3)), c == 2, *(d == v for v in (1, 2, 3)),
        *(e == v for v in (1, 2, 3, 4)), f == 2,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["gen-monk1", "gen-monk2", "gen-monk3"])
def test_monk_problems(name: str) -> None:
    """All 432 points, and the published rules written once more; of the third, 5 % of the labels are turned."""
    rules = {
        "gen-monk1": lambda p: p[0] == p[1] or p[4] == 1,
        "gen-monk2": lambda p: sum(value == 1 for value in p) == 2,
        "gen-monk3": lambda p: (p[4] == 3 and p[3] == 1) or (p[4] != 4 and p[1] != 3),
    }
    data = Registry().load(name)
    assert data.X.tolist() == [monk_bits(point) for point in monk_points()]
    wrong = int(np.sum(data.y != [int(rules[name](point)) for point in monk_points()]))
    assert wrong == (22 if name == "gen-monk3" else 0)


def test_tic_tac_toe() -> None:
    """Boards found by playing every game: 958, of which x wins 626."""
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    ends: dict[tuple[str, ...], bool] = {}

    def play(board: tuple[str, ...], turn: str) -> None:
        winner = next((board[a] for a, b, c in lines if board[a] == board[b] == board[c] != "b"), None)
        if winner is not None or "b" not in board:
            ends[board] = winner == "x"
            return
        for place in range(9):
            if board[place] == "b":
                play((*board[:place], turn, *board[place + 1 :]), "o" if turn == "x" else "x")

    play(("b",) * 9, "x")
    data = Registry().load("gen-tic-tac-toe")
    bits = [[cell == value for cell in board for value in "box"] for board in ends]
    assert len(ends) == len(data.y) == 958 and sum(ends.values()) == 626
    assert as_set(data) == as_set(EncodedData("played", np.array(bits), np.array([int(won) for won in ends.values()])))


def test_balance_scale() -> None:
    """All 625 scales, by the side that goes down."""
    data = Registry().load("gen-balance-scale")
    for bits, label in zip(data.X, data.y, strict=True):
        left_weight, left_arm, right_weight, right_arm = (int(np.argmax(bits[5 * k : 5 * k + 5])) + 1 for k in range(4))
        left, right = left_weight * left_arm, right_weight * right_arm
        assert label == ("L" if left > right else "R" if right > left else "B")
    assert len(as_set(data)) == len(set(as_set(data))) == 625


def test_chains_are_decision_lists() -> None:
    """A chain of N bits is told without a mistake by a tree of depth N, and by no tree with fewer leaves than N + 1."""
    data = Registry().load("gen-chain-4")
    scores = frontier(data.X, data.y, max_depth=4).scores
    assert scores[4] == 1.0 and scores[3] < 1.0


def test_ties_are_rich() -> None:
    """Few distinct rows, and both labels on many of them."""
    data = Registry().load("gen-ties-200x12")
    distinct = {row.tobytes(): set() for row in data.X}
    for row, label in zip(data.X, data.y.tolist(), strict=True):
        distinct[row.tobytes()].add(label)
    assert len(distinct) <= 50 and sum(len(labels) == 2 for labels in distinct.values()) > 20


def test_what_is_generated_is_the_same_everywhere() -> None:
    """Fingerprints go into keys; a change of one is a change of the benchmark."""
    registry = Registry()
    assert {name: fingerprint(registry.load(name))[:8] for name in GENERATED} == FINGERPRINTS
    assert fingerprint(registry.load("sklearn-iris_QT_5"))[:8] == "753a9e68"


FINGERPRINTS = {
    "gen-monk1": "c756b761",
    "gen-monk2": "c1249311",
    "gen-monk3": "cff29a74",
    "gen-tic-tac-toe": "19259eea",
    "gen-balance-scale": "7939102b",
    "gen-chain-6": "cf65bd22",
    "gen-ties-200x12": "f8812c37",
    "gen-hidden-1000x50": "e5041988",
}


def test_a_fingerprint_sees_every_change() -> None:
    """A bit, a label, the order of rows, the groups."""
    data = Registry().load("gen-chain-3")
    others = [
        EncodedData("", data.X ^ (np.arange(3) == 1), data.y),
        EncodedData("", data.X, 1 - data.y),
        EncodedData("", data.X[::-1], data.y),
    ]
    others += [EncodedData("", data.X, data.y, data.y), EncodedData("", data.X.reshape(4, 6), data.y[:4])]
    assert len({fingerprint(each) for each in [data, *others]}) == 6
    assert fingerprint(EncodedData("another name", data.X, data.y)) == fingerprint(data)


# ---------------------------------------------------------------- folders


def folder_with(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        (tmp_path / f"{name}_enc.csv").write_text(text, encoding="utf-8")
    return tmp_path


def test_an_encoded_file(tmp_path: Path) -> None:
    """Columns of 0 and 1, whole numbers as labels in their order, and texts as they are."""
    registry = Registry(folder_with(tmp_path, a="x,y,target\n0,1,10\n1,1.0,9\n", b="x,target\n0,yes\n1,no\n"))
    data = registry.load("a")
    assert data.X.tolist() == [[False, True], [True, True]] and np.unique(data.y).tolist() == [9, 10]
    assert registry.load("b").y.tolist() == ["yes", "no"]
    assert {"a", "b"} <= set(registry.names())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must have a header"),
        ("x,target\n", "must have a header"),
        ("target\n1\n", "must have a header"),
        ("x,y,target\n0,1,1\n0,1\n", "line 3 has 2 cells"),
        ("x,y,target\n0,1,1\n0,0.5,1\n", "line 3: column 'y' must be 0 or 1, got '0.5'"),
        ("x,y,target\n0,,1\n", "line 2: column 'y' must be 0 or 1, got ''"),
        ("x,target\n\x00\x01", "line 2"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """Naming the file, the line and the column."""
    registry = Registry(folder_with(tmp_path, bad=text))
    with pytest.raises(InvalidInputError, match=f"bad_enc.csv.*{said}"):
        registry.load("bad")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    """A folder without data, no folder, a name that is a slip, sizes that make no sense."""
    with pytest.raises(InvalidInputError, match="does not exist"):
        Registry(tmp_path / "nowhere")
    with pytest.raises(InvalidInputError, match=r"holds no file \*_enc.csv"):
        Registry(tmp_path).load("monk1")
    with pytest.raises(InvalidInputError, match="without a data folder: give one, or set ACCEL_OCT_DATA"):
        Registry().load("monk1")
    with pytest.raises(InvalidInputError, match="did you mean 'gen-tic-tac-toe'"):
        Registry().load("gen-tictactoe")
    with pytest.raises(InvalidInputError, match="between 2 and 16 bits"):
        Registry().load("gen-chain-40")
    with pytest.raises(InvalidInputError, match="at least 2 rows"):
        Registry().load("gen-ties-1x1")
    with pytest.raises(InvalidInputError, match="at least 2 quantiles"):
        Registry().load("sklearn-iris_QT_1")
    assert not Registry().has("monk1") and Registry().has("gen-monk1")


def test_raw_files_are_encoded_where_there_is_no_encoding(tmp_path: Path) -> None:
    """By the columns' kinds; rows with missing values are left out; any number of quantiles can be asked for."""
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "iris.data").write_text(
        "".join(f"{n},{n % 3},1,{n * n},{'ab'[n > 4]}\n" for n in range(10)) + "?,1,1,1,a\n\n"
    )
    registry = Registry(tmp_path)
    assert registry.made_from_raw == ("iris_QB_5", "iris_QT_5")
    data = registry.load("iris_QT_2")
    assert data.y.tolist() == list("aaaaabbbbb") and data.X.shape == (10, 3)  # the constant column gives none
    assert data.X[:, 0].tolist() == [False] * 5 + [True] * 5
    assert registry.load("iris_QT_5").X.shape[1] > 3
    (raw / "iris.data").write_text("1,2,3,4,a\n1,2,3,a\n")
    with pytest.raises(InvalidInputError, match=r"iris.data line 2 has 4 cells"):
        registry.load("iris_QT_5")
    (raw / "iris.data").write_text("1,2,3,4,a\n1,2,x,4,b\n")
    with pytest.raises(InvalidInputError, match=r"iris.data: could not convert"):
        registry.load("iris_QT_5")


#: One of each kind; `fertility_QT_5` is another: there a threshold occurs twice in the published file.
REBUILT = ["monk2", "soybean-small", "house-votes-84", "breast-cancer", "hayes-roth", "iris_QB_5", "hepatitis_QT_5",
           "fertility_QB_5", "ILPD_QT_5", "parkinsons_QB_5", "ionosphere_QT_5"]  # fmt: skip


@pytest.mark.parametrize("name", REBUILT)
def test_published_encodings_are_rebuilt_from_raw_files(name: str) -> None:
    """Column for column but for constant ones, and the same classes."""
    folder = published_data()
    published, ours = Registry(folder).load(name), encoded_raw(name, folder)
    assert ours is not None
    varying = published.X.min(axis=0) < published.X.max(axis=0)
    np.testing.assert_array_equal(ours.X, published.X[:, varying])
    assert len(set(zip(ours.y.tolist(), published.y.tolist(), strict=True))) == len(np.unique(published.y))


def test_generated_boards_are_the_published_ones() -> None:
    """Tic-tac-toe and balance scale are whole: the files hold the same rows, in another order."""
    registry = Registry(published_data())
    assert as_set(registry.load("gen-tic-tac-toe")) == [
        (bits, 1 - label)
        for bits, label in sorted(as_set(registry.load("tic-tac-toe")), key=lambda row: (row[0], -row[1]))
    ]
    rows = [row for row, _ in as_set(registry.load("balance-scale"))]
    assert rows == [row for row, _ in as_set(registry.load("gen-balance-scale"))]


def test_raw_files_are_described_for_data_of_the_paper() -> None:
    """Every entry names a target that is no dropped column, and categories that are features."""
    for name, raw in RAW_FILES.items():
        assert raw.target not in raw.dropped, name
        assert raw.target not in (raw.categories or ()), name
