import numpy as np
import pytest

from regard.errors import UserError
from regard.pictures import Map, Record, join
from regard.pictures.heads import rows_of


def renamed(record, *names):
    return Record(
        record.task, record.read, record.written, tuple(Map(n, record.weights()) for n in names)
    )


def test_maps_stand_in_rows_by_layer(chase):
    record = renamed(chase, "layer 2, head 1", "layer 1, head 1", "layer 2, head 2")
    assert rows_of(record) == (("layer 2", (0, 2)), ("layer 1", (1,)))


def test_heads_without_layers_stand_in_one_row(chase):
    assert rows_of(renamed(chase, "head 1", "head 2")) == (("", (0, 1)),)


def test_other_names_fill_rows_of_twelve(chase):
    record = renamed(chase, *(f"hop {n}" for n in range(14)))
    assert [row.maps for row in rows_of(record)] == [tuple(range(12)), (12, 13)]


def test_a_line_end_in_a_name_does_no_harm(chase):
    assert rows_of(renamed(chase, "a\nb: head 1", "a\nb: head 2"))[0].name == "a\nb"


def test_joined_records_name_their_layers_and_keep_what_all_share(chase):
    first = Record(
        "t", chase.read, chase.written, (Map("head 1", chase.weights()),), {"a": 1, "b": 2}
    )
    zeros = np.zeros_like(chase.weights())
    second = Record("t", chase.read, chase.written, (Map("head 1", zeros),), {"a": 1, "b": 3})
    joined = join({"layer 1": first, "layer 2": second})
    assert [one.name for one in joined.maps] == ["layer 1, head 1", "layer 2, head 1"]
    assert np.array_equal(joined.weights("layer 1, head 1"), chase.weights())
    assert not joined.weights("layer 2, head 1").any()
    assert dict(joined.details) == {"a": 1}


def test_records_of_other_texts_are_not_joined(chase, dog, letter):
    with pytest.raises(UserError, match="others in 'b'"):
        join({"a": chase, "b": letter})
    with pytest.raises(UserError, match="others in 'b'"):
        join({"a": chase, "b": dog})
    with pytest.raises(UserError, match="at least 1 record"):
        join({})
