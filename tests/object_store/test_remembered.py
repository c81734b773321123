"""Contents that a process remembers by their tags."""

from lance_format.object_store.remembered import RememberedContents


def test_only_the_content_of_the_named_tag_is_returned() -> None:
    contents = RememberedContents()
    contents.put("a", "1", b"one")
    assert contents.get("a", "1") == b"one"
    assert contents.get("a", "2") is None
    assert contents.get("a", None) is None
    assert contents.get("b", "1") is None
    contents.put("a", "2", b"two")
    assert contents.get("a", "1") is None
    assert contents.get("a", "2") == b"two"


def test_contents_without_a_tag_are_not_kept() -> None:
    contents = RememberedContents()
    for tag in (None, ""):
        contents.put("a", tag, b"one")
        assert contents.get("a", tag) is None


def test_memory_is_bounded_and_the_least_recently_used_go_first() -> None:
    contents = RememberedContents(max_bytes=10)
    contents.put("a", "1", bytes(4))
    contents.put("b", "1", bytes(4))
    assert contents.get("a", "1") == bytes(4)
    contents.put("c", "1", bytes(4))
    assert [contents.get(path, "1") is not None for path in "abc"] == [True, False, True]
    contents.put("d", "1", bytes(11))
    assert contents.get("d", "1") is None
    for number in range(20):  # A replacement takes the place of the former content.
        contents.put("a", str(number), bytes(6))
    assert contents.get("c", "1") == bytes(4)
