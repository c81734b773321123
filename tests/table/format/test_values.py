"""Names, fragments, transactions and manifests as values."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_format import CorruptFileError, FragmentMetadata, InvalidInputError, NotSupportedError
from lance_format.datatypes import Schema
from lance_format.proto import table_pb2
from lance_format.table.format.file_entries import DataFile, DeletionFile, DeletionFileType
from lance_format.table.format.fragment import parse_fragment, serialize_fragment
from lance_format.table.format.index_metadata import parse_index
from lance_format.table.format.layout import ManifestNaming, check_segment, new_data_file_name, parse_manifest_name
from lance_format.table.format.manifest import Manifest
from lance_format.table.format.manifest_file import parse_manifest, serialize_manifest
from lance_format.table.format.successor import make_successor
from lance_format.table.transaction.operations import Append, OtherOperation, Overwrite
from lance_format.table.transaction.transaction import Transaction, parse_transaction, serialize_transaction
from tests.table.builders import SCHEMA, append, changed_manifest, creation, some_fragment

uint64s = st.integers(0, 2**64 - 1)
data_files = st.builds(
    lambda name, columns, size: DataFile(name, tuple(columns), tuple(range(len(columns))), 2, 2, size),
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}", fullmatch=True),
    st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=4),
    uint64s,
)
fragments = st.builds(
    FragmentMetadata,
    st.integers(0, 2**32 - 1),
    st.tuples(data_files),
    st.integers(1000, 2**32),
    st.none() | st.builds(DeletionFile, uint64s, uint64s, st.sampled_from(DeletionFileType), st.integers(0, 1000)),
)


NO_VERSIONS = [
    "d9223372036854775809.manifest",
    "_latest.manifest",
    "1.manifest#1",
    ".tmp_1.manifest",
    "0.manifest",
    "latest_version_hint.json",
    "18446744073709551615.manifest",
    "99999999999999999999.manifest",
    "\N{DEVANAGARI DIGIT ONE}.manifest",
]


class TestNaming:
    @given(st.integers(1, 2**63 - 1), st.sampled_from(ManifestNaming))
    def test_names_round_trip(self, version: int, naming: ManifestNaming) -> None:
        directory, name = naming.path(version).split("/")
        assert directory == "_versions"
        assert parse_manifest_name(name) == (version, naming)

    def test_known_names(self) -> None:
        assert ManifestNaming.V1.path(7) == "_versions/7.manifest"
        assert ManifestNaming.V2.path(1) == "_versions/18446744073709551614.manifest"

    @pytest.mark.parametrize("name", NO_VERSIONS)
    def test_other_files_are_no_versions(self, name: str) -> None:
        assert parse_manifest_name(name) is None

    def test_data_file_names_follow_the_pattern(self) -> None:
        names = {new_data_file_name("0123456789abcdef") for _ in range(100)}
        assert len(names) == 100
        for name in names:
            assert len(name) == 56
            assert set(name[:24]) <= {"0", "1"}
            int(name[24:50], 16)

    @pytest.mark.parametrize(
        "name", ["..", ".", "", "a/b", "../x", "/etc/passwd", ".hidden", "a\\b", "a b", "a\0", "x" * 256]
    )
    def test_names_cannot_leave_their_directory(self, name: str) -> None:
        with pytest.raises(CorruptFileError):
            check_segment(name, "a file")


class TestFragments:
    @given(fragments)
    def test_both_forms_round_trip(self, fragment: FragmentMetadata) -> None:
        assert FragmentMetadata.from_json(json.dumps(fragment.to_json())) == fragment
        assert parse_fragment(serialize_fragment(fragment)) == fragment

    @pytest.mark.parametrize(
        "change",
        [
            {"id": -1},
            {"id": True},
            {"id": "one"},
            {"physical_rows": 2**33},
            {"files": []},
            {"files": [{}]},
            {"files": 1},
            {"extra": 1},
            {"overlays": [{}]},
            {"row_id_meta": {"inline": []}},
            {"row_id_meta": {"Inline": [256]}},
            {"created_at_version_meta": [1]},
            {"deletion_file": {"file_type": "zip"}},
        ],
    )
    def test_malformed_json_is_refused(self, change: dict[str, Any]) -> None:
        value = some_fragment().to_json() | change
        with pytest.raises(InvalidInputError):
            FragmentMetadata.from_json(json.dumps(value))

    @pytest.mark.parametrize(
        "change", [{"path": "../x"}, {"fields": [0]}, {"fields": ["a", "b"]}, {"file_size_bytes": -1}]
    )
    def test_malformed_files_are_refused(self, change: dict[str, Any]) -> None:
        value = some_fragment().to_json()
        value["files"][0] |= change
        with pytest.raises(InvalidInputError):
            FragmentMetadata.from_json(json.dumps(value))

    @given(st.text() | st.binary())
    def test_garbage_is_refused(self, text: str | bytes) -> None:
        with pytest.raises(InvalidInputError):
            FragmentMetadata.from_json(text)


class TestTransactions:
    @given(st.lists(fragments, max_size=3), uint64s)
    def test_round_trip(self, added: list[FragmentMetadata], read_version: int) -> None:
        for operation in (Append(tuple(added)), Overwrite(tuple(added), Schema.from_arrow(SCHEMA))):
            transaction = Transaction(read_version, operation)
            assert parse_transaction(serialize_transaction(transaction)) == transaction

    def test_other_operations_are_known_by_name(self) -> None:
        message = table_pb2.Transaction(uuid="x")
        message.clone.is_shallow = True
        assert parse_transaction(message.SerializeToString()).operation == OtherOperation("clone")
        # Field 999: an operation of the future.
        assert parse_transaction(b"\x12\x01x\xba\x3e\x00").operation == OtherOperation("unknown")

    def test_a_uuid_cannot_lead_elsewhere(self) -> None:
        with pytest.raises(CorruptFileError):
            parse_transaction(table_pb2.Transaction(uuid="../../x").SerializeToString())


def landed(manifest: Manifest | None, transaction: Transaction, now_ns: int) -> Manifest:
    operation = transaction.operation
    assert not isinstance(operation, OtherOperation)
    if manifest is None:
        assert isinstance(operation, Overwrite)
        state = operation.apply(operation.create())
    else:
        state = operation.apply(manifest)
    return make_successor(
        manifest,
        state,
        transaction_file=transaction.file_name,
        inline_transaction=serialize_transaction(transaction),
        now_ns=now_ns,
    )


def first(*added: FragmentMetadata) -> Manifest:
    return landed(None, creation(*added), 10**18 + 5)


def appended(manifest: Manifest, *added: FragmentMetadata) -> Manifest:
    return landed(manifest, append(manifest.version, *added), 2 * 10**18)


def reparsed(manifest: Manifest, change: Callable[[table_pb2.Manifest], object] = bool) -> Manifest:
    return parse_manifest(changed_manifest(serialize_manifest(manifest), change), path="p", version=manifest.version)


class TestManifests:
    def test_the_first(self) -> None:
        manifest = reparsed(first(some_fragment(), some_fragment()))
        assert manifest.version == 1
        assert manifest.timestamp_ns == 10**18 + 5
        assert [fragment.id for fragment in manifest.fragments] == [0, 1]
        message = manifest.message
        assert (message.reader_feature_flags, message.writer_feature_flags) == (0, 0)
        assert message.max_fragment_id == 1
        assert (message.data_format.file_format, message.data_format.version) == ("lance", "2.2")
        assert message.writer_version.library == "pyspark-lance"
        assert message.transaction_section == message.transaction_section_deprecated == 20  # after the checksum
        assert manifest.inline_transaction is not None
        assert parse_transaction(manifest.inline_transaction).uuid in manifest.transaction_file

    def test_ids_are_never_reused(self) -> None:
        manifest = appended(first(some_fragment(), some_fragment()), some_fragment())
        assert [fragment.id for fragment in manifest.fragments] == [0, 1, 2]
        replaced = landed(manifest, creation(some_fragment()), 0)
        assert [fragment.id for fragment in replaced.fragments] == [3]
        emptied = landed(replaced, creation(), 0)
        assert [fragment.id for fragment in appended(emptied, some_fragment()).fragments] == [4]

    def test_ids_follow_the_fragments_where_the_field_is_absent(self) -> None:
        def change(message: table_pb2.Manifest) -> None:
            message.ClearField("max_fragment_id")
            message.fragments[0].id = 41

        manifest = reparsed(first(some_fragment()), change)
        assert [fragment.id for fragment in appended(manifest, some_fragment()).fragments] == [41, 42]

    def test_what_is_not_known_survives_an_append(self) -> None:
        unknown = b"\xc2\x3e\x03new"  # Field 1000, three bytes.

        def change(message: table_pb2.Manifest) -> None:
            message.MergeFromString(unknown)
            message.fragments[0].MergeFromString(unknown)
            message.fragments[0].files[0].MergeFromString(unknown)
            message.config["key"] = "value"
            message.table_metadata["more"] = "metadata"

        manifest = reparsed(first(some_fragment()), change)
        data = serialize_manifest(reparsed(appended(manifest, some_fragment())))
        assert data.count(unknown) == 3
        emptied = dataclasses.replace(manifest.fragments[0], physical_rows=7)
        assert serialize_fragment(emptied).SerializeToString().count(unknown) == 2
        successor = parse_manifest(data, path="p", version=2)
        assert dict(successor.message.config) == {"key": "value"}
        assert dict(successor.message.table_metadata) == {"more": "metadata"}
        assert successor.message.writer_feature_flags == 8

    def test_a_successor_does_not_change_its_predecessor(self) -> None:
        manifest = first(some_fragment())
        before = serialize_manifest(manifest)
        appended(manifest, some_fragment())
        assert serialize_manifest(manifest) == before

    def test_indices_stay_with_their_fragments(self) -> None:
        message = table_pb2.IndexMetadata(name="i", uuid=table_pb2.UUID(uuid=bytes(range(16))))
        message.MergeFromString(b"\xc2\x3e\x03new")  # Content of a newer writer.
        manifest = dataclasses.replace(first(some_fragment()), indices=(parse_index(message),))
        after = reparsed(appended(reparsed(manifest), some_fragment()))
        assert [index.message for index in after.indices] == [message]
        assert not reparsed(landed(manifest, creation(), 0)).indices

    def test_files_of_several_versions_are_flagged_for_good(self) -> None:
        older = DataFile("x.lance", (0,), (0,), 2, 1, 10)
        manifest = appended(first(some_fragment()), FragmentMetadata(0, (older,), 1))
        assert manifest.message.reader_feature_flags == manifest.message.writer_feature_flags == 256
        assert landed(manifest, creation(some_fragment()), 0).message.reader_feature_flags == 256

    @pytest.mark.parametrize("bit", [6, 7, 9, 10, 11, 12, 63])
    def test_unknown_flags_are_refused(self, bit: int) -> None:
        manifest = first(some_fragment())
        manifest.message.reader_feature_flags = 1 << bit
        with pytest.raises(NotSupportedError, match=str(1 << bit)):
            reparsed(manifest)
        manifest.message.reader_feature_flags = 0
        manifest.message.writer_feature_flags = 1 << bit
        with pytest.raises(NotSupportedError, match=str(1 << bit)):
            reparsed(manifest).check_writable("the table")

    def test_base_paths_are_refused(self) -> None:
        manifest = first(some_fragment())
        manifest.message.base_paths.add(id=1, path="/elsewhere")
        with pytest.raises(NotSupportedError, match="base paths"):
            reparsed(manifest)

    def test_contradictions_are_refused(self) -> None:
        manifest = first(some_fragment(), some_fragment())
        with pytest.raises(CorruptFileError, match="version 1, its name says 2"):
            parse_manifest(serialize_manifest(manifest), path="p", version=2)

    @pytest.mark.parametrize(
        ("what", "change"),
        [
            ("fragment 150 has no row ids", lambda message: setattr(message, "reader_feature_flags", 2)),
            (
                "fragment 9 has a file in a base path",
                lambda message: setattr(message.fragments[9].files[0], "base_id", 4),
            ),
            (
                "fragment 9 has a field twice",
                lambda message: (
                    message.fragments[9].files[0].fields.__setitem__(1, message.fragments[9].files[0].fields[0])
                ),
            ),
            ("wire type", lambda message: message.fragments[9].MergeFromString(b"\x25\0\0\0\0")),
            ("wire type", lambda message: message.MergeFromString(b"\x10\x05")),
            ("called", lambda message: setattr(message.fragments[9].files[0], "path", "../x")),
        ],
    )
    def test_contradictions_among_many_fragments_are_refused(
        self, what: str, change: Callable[[table_pb2.Manifest], object]
    ) -> None:
        def promise_row_ids(message: table_pb2.Manifest) -> None:
            for fragment in message.fragments:
                if fragment.id != 150:
                    fragment.inline_row_ids = b""

        data = changed_manifest(serialize_manifest(first(*[some_fragment()] * 200)), promise_row_ids)
        assert len(parse_manifest(data, path="p", version=1).fragments) == 200
        with pytest.raises(CorruptFileError, match=what):
            parse_manifest(changed_manifest(data, change), path="p", version=1)

    def test_an_unknown_file_format_is_refused(self) -> None:
        for name, version in (("parquet", "2.2"), ("lance", "7.7")):
            manifest = first(some_fragment())
            manifest.message.data_format.file_format, manifest.message.data_format.version = name, version
            with pytest.raises(NotSupportedError):
                reparsed(manifest)
